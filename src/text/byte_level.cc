#include "text/byte_level.h"

#include <array>

#include "text/utf8.h"

namespace mx8::text {

namespace {

struct Alphabet {
  std::array<std::string, 256> chars;
  std::array<int, 512> bytes;  // code point -> byte, or -1

  Alphabet() {
    bytes.fill(-1);
    uint32_t next = 256;  // the bytes that have no printable character of their own
    for (uint32_t b = 0; b < 256; ++b) {
      const bool printable =
          (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
      const uint32_t c = printable ? b : next++;
      append_utf8(chars[b], c);
      bytes[c] = static_cast<int>(b);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string_view byte_level_char(unsigned char byte) { return alphabet().chars[byte]; }

std::optional<std::string> byte_level_decode(std::string_view token) {
  const Alphabet& a = alphabet();
  std::string out;
  out.reserve(token.size());
  for (size_t at = 0; at < token.size();) {
    const CodePoint c = decode_valid(token.data() + at);
    if (c.value >= a.bytes.size() || a.bytes[c.value] < 0) return std::nullopt;
    out.push_back(static_cast<char>(a.bytes[c.value]));
    at += c.size;
  }
  return out;
}

std::string byte_level_encode(std::string_view bytes) {
  const Alphabet& a = alphabet();
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char b : bytes) out += a.chars[static_cast<unsigned char>(b)];
  return out;
}

}  // namespace mx8::text
