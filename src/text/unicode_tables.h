// Code points that `tokenizers` treats unlike the Unicode tables of PCRE2 10.42 and utf8proc 2.8.
#pragma once

#include <cstdint>
#include <span>

namespace mx8::text {

struct CategoryRange {
  uint32_t first, last;
  const char* category;  // "Lu"
};

// What Unicode 15 and 16 added, ascending, with its general category.
std::span<const CategoryRange> newer_code_points();
const CategoryRange* find_newer(uint32_t code_point);  // null when it is older, or not assigned

// True for code points that the normaliser's older tables don't know: they have no decomposition
// and stay where they are among combining marks.
bool is_opaque_to_normalizer(uint32_t code_point);

}  // namespace mx8::text
