// The recorded peer times of bench/peers: flat tables "shape M" -> microseconds.
#pragma once

#include <map>
#include <string>

#include "base/result.h"

namespace mx8::bench {

using PeerTable = std::map<std::string, double>;

// Reads a table file: one object whose values are numbers ("q30b.qkv 1": 11.36) or objects, whose
// members become "q30b.qkv 1/bf16". Only the JSON these files use: objects, strings, numbers, null.
Result<PeerTable> read_peer_table(const std::string& path);

}  // namespace mx8::bench
