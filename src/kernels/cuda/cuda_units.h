// The units of GPU code: which of them this program was built with, and for which GPUs. Pure CPU
// code, so that plans for any GPU can be made, and what a program lacks be named, anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mx8::cuda {

enum class Unit : uint8_t { kNone, kSm80, kSm89, kSm90, kSm120, kEmulation, kQuantizeMx };

// "" where this program holds machine code of the unit for compute capability `sm` (10 * major +
// minor); else what it lacks and which build has it.
std::string missing_unit(Unit unit, int sm);

// The same over a list of targets as nvcc names them, "80 90a": true where one of them runs on
// `sm`. "90a" runs on SM90 alone; "80" runs on SM80, SM86 and SM89, not on the Jetson's SM87.
bool targets_run_on(std::string_view targets, int sm);

}  // namespace mx8::cuda
