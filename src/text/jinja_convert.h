// JSON into values: the one place where the engine meets the JSON library.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "text/jinja_value.h"

namespace mx8::jinja {

// `marked`: every string in it (keys too) counts as text of a user.
Value from_json(Heap& heap, const nlohmann::ordered_json& json, bool marked);

// Helpers that filters and methods share: results are checked before they are built.
Text checked_replace(Heap& heap, const Text& s, const Text& from, const Text& to,
                     int64_t max_count);
std::string spaces(Heap& heap, int64_t count);  // none when negative

}  // namespace mx8::jinja
