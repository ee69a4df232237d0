// Tells network file systems, where page-by-page reads are slow, from local ones.
#pragma once

#include <cstdint>
#include <string>

namespace mx8 {

// By the type number that statfs(2) gives.
bool is_network_filesystem(uint32_t magic);
// False where the system does not say.
bool lies_on_network_filesystem(const std::string& path);

}  // namespace mx8
