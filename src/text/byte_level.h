// The byte-level alphabet of GPT-2: one printable character for each of the 256 bytes, so that any
// byte string can be written as text in a vocabulary.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mx8::text {

// The UTF-8 character (1 or 2 bytes) that stands for a byte.
std::string_view byte_level_char(unsigned char byte);

// "Ġthe" -> " the"; nothing when a character is not of the alphabet. `token` must be valid UTF-8.
std::optional<std::string> byte_level_decode(std::string_view token);

std::string byte_level_encode(std::string_view bytes);

}  // namespace mx8::text
