// Reads the small parts of tokenizer.json: normaliser, pre-tokeniser, post-processor, decoder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer_data.h"

namespace mx8::text {

// Each takes the JSON text of one top-level field ("null" where the file has none). Messages name
// the field and the node.
Result<Normalizer> parse_normalizer(std::string_view json);
Result<PreTokenizer> parse_pre_tokenizer(std::string_view json);
Result<TemplateIds> parse_post_processor(std::string_view json);
Result<std::vector<DecoderNode>> parse_decoder(std::string_view json);

// An error when brackets nest deeper than the parsers of small JSON may follow.
Result<void> check_depth(std::string_view json);

}  // namespace mx8::text
