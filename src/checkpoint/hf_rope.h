// The rotary embedding's fields of config.json; used by hf_config.cc only.
#pragma once

#include "base/result.h"
#include "checkpoint/hf_config.h"

namespace mx8 {

namespace json {
class Fields;
}

// Fills rope_theta, partial_rotary_factor and rope_scaling; the sizes must be there already.
Result<void> read_rope(const json::Fields& config, HfConfig& out);

}  // namespace mx8
