// The block quantiser against an independent one in numpy (tools/mxfp8_numpy.py).
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>

#include "mx/block.h"

namespace mx8 {
namespace {

TEST(MxCases, EveryBlockUnderEveryRule) {
  std::ifstream file(MX8_SOURCE_DIR "/tests/data/mx/quantize_cases.json");
  const auto data = nlohmann::json::parse(file);
  ASSERT_GT(data["cases"].size(), 200u);
  for (const auto& c : data["cases"]) {
    const std::string bits = c["values"];
    std::vector<float> values;
    for (size_t i = 0; i < bits.size(); i += 8) {
      values.push_back(
          std::bit_cast<float>(static_cast<uint32_t>(std::stoul(bits.substr(i, 8), nullptr, 16))));
    }
    for (const auto& [rule, want] : c["rules"].items()) {
      SCOPED_TRACE(c["name"].get<std::string>() + ", " + rule);
      std::vector<uint8_t> codes(values.size());
      const uint8_t scale = mx_quantize_block(values, *parse_scale_rule(rule), codes);
      EXPECT_EQ(scale, want["scale"]);
      std::string hex;
      for (uint8_t code : codes) {
        hex += "0123456789abcdef"[code >> 4];
        hex += "0123456789abcdef"[code & 15];
      }
      EXPECT_EQ(hex, want["codes"]);
    }
  }
}

}  // namespace
}  // namespace mx8
