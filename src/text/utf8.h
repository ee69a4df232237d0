// UTF-8 and the few Unicode properties that tokenizers ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mx8::text {

struct CodePoint {
  uint32_t value;
  uint32_t size;  // bytes
};

// Reads one code point; `p` must point at the first byte of a valid sequence.
inline CodePoint decode_valid(const char* p) {
  const auto byte = [p](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(p[i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

void append_utf8(std::string& out, uint32_t code_point);

bool is_valid_utf8(std::string_view text);
// Bytes before the first that is not part of a valid character; all of them in valid text.
size_t valid_utf8_prefix(std::string_view text);

// Appends `bytes` to `out`; every maximal invalid part becomes one U+FFFD. Returns how many bytes
// were used: all of them, or, with `more_may_follow`, all but the start of a character cut short.
size_t append_lossy(std::string& out, std::string_view bytes, bool more_may_follow);

inline bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

bool is_white_space(uint32_t code_point);  // White_Space
bool is_word(uint32_t code_point);         // \w: letters, marks, digits, connectors, joiners
bool is_numeric(uint32_t code_point);      // Nd, Nl, No
bool is_punctuation(
    uint32_t code_point);  // P* of Unicode 15, and all ASCII punctuation and symbols

// Full lower case of one code point, without context.
void append_lowercase(std::string& out, uint32_t code_point);

// Bytes of white space at the end and at the start of valid UTF-8.
size_t trailing_white_space(std::string_view text);
size_t leading_white_space(std::string_view text);

}  // namespace mx8::text
