#include "kernels/cuda/cuda_units.h"

#include <cstdlib>

#include "base/strings.h"

// The build defines MX8_CUDA_<unit>_FOR as the targets of each unit that it compiles.
#ifndef MX8_CUDA_SM80_FOR
#define MX8_CUDA_SM80_FOR ""
#endif
#ifndef MX8_CUDA_SM89_FOR
#define MX8_CUDA_SM89_FOR ""
#endif
#ifndef MX8_CUDA_SM90_FOR
#define MX8_CUDA_SM90_FOR ""
#endif
#ifndef MX8_CUDA_SM120_FOR
#define MX8_CUDA_SM120_FOR ""
#endif
#ifndef MX8_CUDA_EMULATION_FOR
#define MX8_CUDA_EMULATION_FOR ""
#endif
#ifndef MX8_CUDA_QUANTIZE_MX_FOR
#define MX8_CUDA_QUANTIZE_MX_FOR ""
#endif

namespace mx8::cuda {
namespace {

constexpr int kJetsonOrin = 87;  // desktop machine code is not promised to run there

std::string_view targets_of(Unit unit) {
  switch (unit) {
    case Unit::kNone: return "";
    case Unit::kSm80: return MX8_CUDA_SM80_FOR;
    case Unit::kSm89: return MX8_CUDA_SM89_FOR;
    case Unit::kSm90: return MX8_CUDA_SM90_FOR;
    case Unit::kSm120: return MX8_CUDA_SM120_FOR;
    case Unit::kEmulation: return MX8_CUDA_EMULATION_FOR;
    case Unit::kQuantizeMx: return MX8_CUDA_QUANTIZE_MX_FOR;
  }
  return "";
}

}  // namespace

bool targets_run_on(std::string_view targets, int sm) {
  for (const std::string& target : split(targets, ' ')) {
    if (target.empty()) continue;
    const int built = std::atoi(target.c_str());
    if (built == sm) return true;
    if (target.back() != 'a' && built / 10 == sm / 10 && built < sm && sm != kJetsonOrin)
      return true;
  }
  return false;
}

std::string missing_unit(Unit unit, int sm) {
  if (unit == Unit::kNone || targets_run_on(targets_of(unit), sm)) return "";
  return str_cat("not in this program: built without CUDA for SM", sm,
                 " (MX8_CUDA_ARCHITECTURES=", sm, sm >= 90 ? "a" : "", " has it)");
}

}  // namespace mx8::cuda
