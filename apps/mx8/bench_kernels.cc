// mx8 bench kernels: the CPU's matrix kernels against what the machine can do.
#include <cstdio>

#include "base/strings.h"
#include "bench_verbs.h"
#include "kernels/cpu/kernel_bench.h"

namespace mx8 {

VerbRunner add_bench_kernels(CLI::App& app) {
  struct Flags {
    int threads = 0;
    int reps = 15;
    bool json = false;
  };
  auto f = std::make_shared<Flags>();
  app.add_option("--threads", f->threads, "Threads; 0 takes every processor")
      ->check(CLI::Range(0, 1024))
      ->envname("MX8_THREADS");
  app.add_option("--reps", f->reps, "Rounds over all measurements")
      ->check(CLI::Range(3, 1000))
      ->capture_default_str();
  app.add_flag("--json", f->json, "Machine-readable");
  return [f]() -> Result<void> {
    MX8_TRY(const DeviceCaps caps, detect_cpu_caps());
    cpu::KernelBenchOptions options;
    options.threads = f->threads;
    options.reps = f->reps;
    options.isa = caps.isa;
    const cpu::KernelBenchReport report = cpu::bench_kernels(options);
    const std::string text = f->json ? cpu::to_json(report) : cpu::to_table(report);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  };
}

}  // namespace mx8
