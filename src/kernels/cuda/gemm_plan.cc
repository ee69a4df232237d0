#include "kernels/cuda/gemm_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/check.h"
#include "base/strings.h"

namespace mx8::cuda {
namespace {

constexpr GemmMeasurement kMeasured[] = {
#include "kernels/cuda/gemm_plan_table.inc"
};

int ceil_div(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

// Distance of two weight shapes; the number of row tiles decides waves, so it weighs more.
double distance(int64_t rows_a, int64_t k_a, int64_t rows_b, int64_t k_b) {
  return std::abs(std::log2(static_cast<double>(rows_a) / static_cast<double>(rows_b))) +
         0.5 * std::abs(std::log2(static_cast<double>(k_a) / static_cast<double>(k_b)));
}

// Measured token counts of an element type, ascending.
std::vector<int> measured_tokens(Act act) {
  std::vector<int> m;
  for (const GemmMeasurement& r : kMeasured)
    if (r.act == act) m.push_back(r.m);
  std::sort(m.begin(), m.end());
  m.erase(std::unique(m.begin(), m.end()), m.end());
  return m;
}

const GemmMeasurement* nearest(Act act, int64_t rows, int64_t k, int m) {
  const GemmMeasurement* best = nullptr;
  double least = 0;
  for (const GemmMeasurement& r : kMeasured) {
    if (r.act != act || r.m != m) continue;
    const double d = distance(rows, k, r.rows, r.k);
    if (best == nullptr || d < least) best = &r, least = d;
  }
  return best;
}

// Tile rows and tokens of a gemm instance, "128x256..." (its suffix letters do not matter here).
void tile_of(const std::string& instance, int& rows, int& tokens) {
  rows = std::atoi(instance.c_str());
  tokens = std::atoi(instance.c_str() + instance.find('x') + 1);
}

// A choice measured at one shape, fitted to another: the parts of K keep the number of CTAs.
GemmChoice fitted(GemmChoice c, const GemmMeasurement& at, int64_t rows, int64_t k) {
  if (c.parts <= 1 && c.family != GemmChoice::Family::kStream) return c;
  int tile_rows = 64, tokens = 0;
  if (c.family == GemmChoice::Family::kGemm) tile_of(c.instance, tile_rows, tokens);
  const double wanted =
      static_cast<double>(c.parts) * ceil_div(at.rows, tile_rows) / ceil_div(rows, tile_rows);
  const int most = static_cast<int>(std::clamp<int64_t>(k / 256, 1, 8));
  c.parts = std::clamp(static_cast<int>(std::lround(wanted)), 1, most);
  return c;
}

// FP16 has a few instances of the same shapes as BF16: the nearest of them.
GemmChoice for_fp16(GemmChoice c, int m) {
  if (c.family == GemmChoice::Family::kStream || c.family == GemmChoice::Family::kEmulation)
    return c;
  if (m <= 64 && c.split == GemmChoice::Split::kCluster) return c.instance = "64x64lc", c;
  if (c.split == GemmChoice::Split::kCluster) c.split = GemmChoice::Split::kStreamK, c.parts = 1;
  c.instance = m <= 32 ? "256x32" : m <= 64 ? "128x64" : m <= 128 ? "128x128" : "128x256";
  return c;
}

// The number 1..99 that is all of `text` behind `prefix`, else 0.
int number_after(std::string_view text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return 0;
  text.remove_prefix(prefix.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 1 && number <= 99 ? number : 0;
}

// Before SM90 (and after): mma.sync tiles, K shared out while the tiles do not fill the GPU.
GemmChoice sm80_choice(const GemmProblem& p, int m) {
  GemmChoice c;
  c.family = GemmChoice::Family::kSm80;
  const int tokens = m <= 16 ? 16 : m <= 64 ? 64 : 128;
  c.instance = str_cat("128x", tokens);
  const int tiles = ceil_div(p.rows, 128) * ceil_div(m, tokens);
  const int most = static_cast<int>(std::clamp<int64_t>(p.k / 256, 1, 16));
  c.parts = std::clamp(2 * p.sms / tiles, 1, most);
  return c;
}

}  // namespace

Result<GemmChoice> GemmChoice::try_parse(std::string_view name) {
  GemmChoice c;
  if (name == "emulation") return c;
  const Error none = invalid_argument(
      str_cat("'", name, "' names no GEMM kernel; 'gemm/128x256/whole' or 'emulation' would"));
  const size_t a = name.find('/'), b = name.find('/', a + 1);
  if (a == std::string_view::npos || b == std::string_view::npos) return none;
  const std::string_view family = name.substr(0, a), split = name.substr(b + 1);
  c.instance = std::string(name.substr(a + 1, b - a - 1));
  if (family == "stream" || family == "sm80") {
    c.family = family == "stream" ? Family::kStream : Family::kSm80;
    c.parts = number_after(split, "s");
    if (c.parts < 1) return none;
    return c;
  }
  if (family != "gemm") return none;
  c.family = Family::kGemm;
  if (split == "whole") return c;
  if (split == "streamk") return c.split = Split::kStreamK, c;
  if (split == "streamk1") return c.split = Split::kStreamKOne, c;
  c.split = Split::kCluster;
  c.parts = number_after(split, "cluster");
  if (c.parts < 1) return none;
  return c;
}

std::string GemmChoice::name() const {
  switch (family) {
    case Family::kEmulation:
      return "emulation";
    case Family::kStream:
      return str_cat("stream/", instance, "/s", parts);
    case Family::kSm80:
      return str_cat("sm80/", instance, "/s", parts);
    case Family::kGemm:
      break;
  }
  static constexpr const char* kSplits[] = {"whole", "streamk", "streamk1", "cluster"};
  const std::string base = str_cat("gemm/", instance, "/", kSplits[static_cast<int>(split)]);
  return split == Split::kCluster ? str_cat(base, parts) : base;
}

std::vector<GemmBucket> plan_gemm(const GemmProblem& p) {
  MX8_CHECK(p.rows >= 1 && p.k >= 32 && p.k % 32 == 0, p.rows, p.k);
  std::vector<GemmBucket> plan;
  // The measured token counts are the bucket bounds: a bucket takes the kernel of its upper end.
  const Act table = p.act == Act::kFp16 ? Act::kBf16 : p.act;
  for (int m : measured_tokens(table)) {
    const int bound = std::min(m, p.max_m);
    GemmChoice c;
    if (p.sm == 90) {
      const GemmMeasurement* row = nearest(table, p.rows, p.k, m);
      c = fitted(GemmChoice::parse(row->kernel), *row, p.rows, p.k);
      if (p.act == Act::kFp16) c = for_fp16(c, m);
    } else if (p.act == Act::kFp8 ? p.sm == 89 : p.sm >= 80) {
      c = sm80_choice(p, bound);
    }
    if (!plan.empty() && plan.back().choice == c)
      plan.back().max_m = bound;
    else
      plan.push_back({bound, c});
    if (bound == p.max_m) return plan;
  }
  plan.back().max_m = p.max_m;
  return plan;
}

const GemmChoice& choice_for(const std::vector<GemmBucket>& buckets, int m) {
  for (const GemmBucket& b : buckets)
    if (m <= b.max_m) return b.choice;
  MX8_CHECK(false, "more tokens than planned for", m);
  return buckets.back().choice;
}

double measured_ratio_to_bf16(const GemmProblem& p, int m) {
  if (p.sm != 90 || p.act == Act::kFp16) return 0;
  const std::vector<int> tokens = measured_tokens(p.act);
  const auto at = std::lower_bound(tokens.begin(), tokens.end(), m);
  const GemmMeasurement* row =
      nearest(p.act, p.rows, p.k, at == tokens.end() ? tokens.back() : *at);
  if (row == nullptr || distance(p.rows, p.k, row->rows, row->k) > 1) return 0;
  return static_cast<double>(row->cublas_us) / static_cast<double>(row->us);
}

const std::vector<GemmMeasurement>& gemm_measurements() {
  static const std::vector<GemmMeasurement> rows(std::begin(kMeasured), std::end(kMeasured));
  return rows;
}

}  // namespace mx8::cuda
