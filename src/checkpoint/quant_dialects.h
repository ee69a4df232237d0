// The readers of quantisation dialects; used by quant_config.cc only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/json.h"
#include "checkpoint/quant_config.h"

namespace mx8 {

// Each takes the quantization_config object and ends in one record.
Result<QuantPlanParts> read_compressed_tensors(const json::Fields& config);
Result<QuantPlanParts> read_mxfp8_plain(const json::Fields& config);
Result<QuantPlanParts> read_auto_round(const json::Fields& config);
// Either may be null: `inlined` is config.json's object, `side` hf_quant_config.json's.
Result<QuantPlanParts> read_modelopt(const json::Fields* inlined, const json::Fields* side);
// True if the method is ModelOpt's: "modelopt", "modelopt_mxfp8", ...
bool is_modelopt_method(std::string_view method);

// `path: "name" says FP8 per tensor, which mx8 does not run yet; ...`
Error format_not_runnable(const std::string& path, std::string_view where, std::string_view format);

// "re:" patterns, fnmatch wildcards (where `wildcards`), else the given kind.
Result<NamePattern> parse_entry(const std::string& text, NamePattern::Kind otherwise,
                                bool wildcards, const std::string& path, std::string_view list);
// Adds every entry of a list with one scheme.
Result<void> add_entries(const std::vector<std::string>& entries, NamePattern::Kind otherwise,
                         bool wildcards, const QuantScheme& scheme, const std::string& path,
                         const std::string& list, QuantRules& rules);

}  // namespace mx8
