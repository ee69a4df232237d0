#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/strings.h"
#include "common.h"
#include "quantizer/quantizer.h"

namespace mx8 {

namespace {

struct QuantizeFlags {
  std::string in;
  std::string out;
  std::string format = "compressed-tensors";
  std::string scale_rule = "rceil";
  std::string scheme = "w8a8";
  std::string shard_size = "5GB";
  QuantizeOptions options;
  int threads = 0;
  bool json = false;
};

// A bar on a terminal, a line for every tenth elsewhere.
class Progress {
 public:
  void operator()(uint64_t done, uint64_t total, const std::string& tensor) {
    const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
    if (isatty(STDERR_FILENO)) {
      const double now = now_seconds();
      if (now - last_ < 0.1 && done < total) return;
      last_ = now;
      const int width = 30, filled = static_cast<int>(share * width);
      std::fprintf(stderr, "\r[%.*s%*s] %3.0f %%  %-50.50s", filled,
                   "##############################", width - filled, "", share * 100,
                   done < total ? tensor.c_str() : "");
      if (done >= total) std::fprintf(stderr, "\n");
      return;
    }
    const int tenth = static_cast<int>(share * 10);
    if (tenth > tenth_) std::fprintf(stderr, "quantised %d %%\n", tenth * 10);
    tenth_ = std::max(tenth_, tenth);
  }

 private:
  double last_ = 0;
  int tenth_ = 0;
};

Result<void> run(QuantizeFlags& f) {
  f.options.format =
      f.format == "modelopt" ? CheckpointFormat::kModelOpt : CheckpointFormat::kCompressedTensors;
  f.options.scale_rule = *parse_scale_rule(f.scale_rule);
  f.options.activations =
      f.scheme == "w8a16" ? ActivationScheme::kNone : ActivationScheme::kDynamicMxfp8;
  f.options.version = version_string();
  MX8_TRY(f.options.max_shard_bytes, parse_bytes(f.shard_size, "--shard-size"));
  auto progress = std::make_shared<Progress>();
  f.options.progress = [progress](uint64_t done, uint64_t total, const std::string& tensor) {
    (*progress)(done, total, tensor);
  };
  ThreadPool pool(f.threads);
  const double start = now_seconds();
  MX8_TRY(const QuantizeReport report, quantize_checkpoint(f.in, f.out, f.options, pool));
  const double seconds = now_seconds() - start;
  if (f.json) {
    std::string plain;
    for (const std::string& m : report.plain_modules)
      plain += (plain.empty() ? "" : ", ") + json_string(m);
    std::printf(
        "{\"quantised_modules\": %lld, \"plain_modules\": [%s], \"bytes_in\": %llu, "
        "\"bytes_out\": %llu, \"relative_error\": %s, \"verified_blocks\": %lld, "
        "\"seconds\": %s, \"peak_rss_bytes\": %llu}\n",
        static_cast<long long>(report.quantised_modules), plain.c_str(),
        static_cast<unsigned long long>(report.bytes_in),
        static_cast<unsigned long long>(report.bytes_out),
        json_number(report.relative_error).c_str(), static_cast<long long>(report.verified_blocks),
        json_number(seconds).c_str(), static_cast<unsigned long long>(peak_rss_bytes()));
    return {};
  }
  std::printf(
      "Wrote %s: %lld linear layers to MXFP8 (%s, %s), %zu kept plain, %s -> %s, "
      "relative error %.4f, %.1f s\n",
      f.out.c_str(), static_cast<long long>(report.quantised_modules), f.format.c_str(),
      f.scale_rule.c_str(), report.plain_modules.size(), format_bytes(report.bytes_in).c_str(),
      format_bytes(report.bytes_out).c_str(), report.relative_error, seconds);
  if (f.options.verify) {
    std::printf("Verified: %lld random blocks equal a fresh quantisation of the source\n",
                static_cast<long long>(report.verified_blocks));
  }
  return {};
}

}  // namespace

VerbRunner add_quantize(CLI::App& app) {
  auto f = std::make_shared<QuantizeFlags>();
  app.add_option("in", f->in, "Checkpoint folder with BF16, FP16 or FP32 weights")->required();
  app.add_option("out", f->out, "Folder to write")->required();
  app.add_option("--format", f->format, "compressed-tensors or modelopt")
      ->check(CLI::IsMember({"compressed-tensors", "modelopt"}))
      ->capture_default_str();
  app.add_option("--scale-rule", f->scale_rule,
                 "rceil, floor or compressed-tensors (docs/numerics.md)")
      ->check(CLI::IsMember({"rceil", "floor", "compressed-tensors"}))
      ->capture_default_str();
  app.add_option("--scheme", f->scheme,
                 "What the config asks of engines: w8a8, or w8a16 for weights only")
      ->check(CLI::IsMember({"w8a8", "w8a16"}))
      ->capture_default_str();
  app.add_option("--include", f->options.include,
                 "Also quantise modules that match this regular expression (lm_head, routers)");
  app.add_option("--exclude", f->options.exclude,
                 "Leave modules plain that match this regular expression");
  app.add_option("--shard-size", f->shard_size, "Largest weight file")->capture_default_str();
  app.add_flag("--verify", f->options.verify, "Re-read the result and recompute random blocks");
  app.add_flag("--overwrite", f->options.overwrite, "Replace the output folder if it exists");
  app.add_option("--threads", f->threads, "Threads; 0 takes every processor")
      ->check(CLI::Range(0, 1024))
      ->envname("MX8_THREADS");
  app.add_flag("--json", f->json, "Machine-readable report");
  return [f]() -> Result<void> { return run(*f); };
}

}  // namespace mx8
