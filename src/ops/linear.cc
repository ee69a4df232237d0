#include "ops/linear.h"

#include "base/strings.h"
#include "kernels/cpu/linear.h"
#include "kernels/reference/linear.h"
#include "pack/cpu_panel.h"
#include "pack/row_list.h"

namespace mx8 {

namespace {

std::string describe_part(const QuantView& part) {
  return str_cat(describe(part.scheme), " [", part.rows, ", ", part.cols, "]");
}

// What can be wrong with the parts of one matrix, before their bytes are looked at.
Result<void> check_parts(const DeviceCaps& caps, const LinearSpec& spec,
                         std::span<const QuantView> parts) {
  MX8_CHECK(!parts.empty(), spec.name);
  const QuantView& first = parts[0];
  for (const QuantView& part : parts) {
    if (part.rows < 1 || part.cols < 1) {
      return invalid_argument(
          str_cat(spec.name, ": a weight of ", describe_part(part), " has no elements"));
    }
    if (part.cols != first.cols || part.scheme != first.scheme) {
      return invalid_argument(str_cat(spec.name, ": its parts disagree: ", describe_part(first),
                                      " and ", describe_part(part),
                                      "; fused parts must have one width and one quantisation"));
    }
  }
  if (spec.order == RowOrder::kGateUpInterleaved) {
    MX8_CHECK(parts.size() == 2, spec.name, parts.size());
    if (parts[1].rows != first.rows) {
      return invalid_argument(str_cat(spec.name, ": gate is ", describe_part(first), ", up is ",
                                      describe_part(parts[1]), "; they must have the same rows"));
    }
  }
  if (first.scheme.is_mxfp8()) {
    if (first.cols % kMxBlock != 0) {
      return invalid_argument(str_cat(spec.name, ": an MXFP8 weight of ", describe_part(first),
                                      " needs a width that is a multiple of ", kMxBlock));
    }
    return {};
  }
  if (caps.kind == DeviceKind::kCuda) {
    return unsupported(str_cat(spec.name, ": a weight of ", describe_part(first),
                               " runs on CPUs only; on a GPU MXFP8 weights do"));
  }
  const DType type = first.scheme.code_type;
  if (!first.scheme.is_plain() ||
      (type != DType::kBF16 && type != DType::kF16 && type != DType::kF32)) {
    return unsupported(str_cat(spec.name, ": weights in ", describe(first.scheme),
                               " are not supported; MXFP8, BF16, F16 and F32 are"));
  }
  return {};
}

Result<WeightAudit> audit_parts(const DeviceCaps& caps, const LinearSpec& spec,
                                std::span<const QuantView> parts) {
  WeightAudit audit;
  for (size_t i = 0; i < parts.size(); ++i) {
    const WeightAudit part = audit_weight(parts[i].mx(), caps.kind == DeviceKind::kCuda);
    if (!part.finite()) {
      const std::string name =
          parts.size() == 1 ? spec.name : str_cat(spec.name, " (part ", i + 1, ")");
      return corrupt(describe_bad_weight(part, name));
    }
    audit.merge(part);
  }
  return audit;
}

Result<LinearProblem> problem_of(const DeviceCaps& caps, const LinearSpec& spec,
                                 std::span<const QuantView> parts, int experts) {
  LinearProblem problem;
  for (const QuantView& part : parts) problem.n += part.rows;
  problem.k = parts[0].cols;
  problem.weight = parts[0].scheme;
  problem.activation = spec.activation;
  problem.max_m = spec.max_m;
  problem.experts = experts;
  problem.order = spec.order;
  MX8_TRY(problem.audit, audit_parts(caps, spec, parts));
  return problem;
}

Result<LinearPlan> plan_of(const DeviceCaps& caps, const LinearSpec& spec,
                           const LinearProblem& problem) {
  auto plan = problem.experts > 0 ? select_mxfp8_moe_backend(caps, problem, spec.preference)
                                  : select_mxfp8_linear_backend(caps, problem, spec.preference);
  if (!plan.ok()) return Error{plan.error().code, str_cat(spec.name, ": ", plan.error().message)};
  return plan;
}

PackedWeight pack_parts(const LinearSpec& spec, std::span<const QuantView> parts, LayoutId layout) {
  const std::vector<PackRow> rows = list_rows(parts, spec.order);
  const int64_t k = parts[0].cols;
  const QuantScheme& scheme = parts[0].scheme;
  Buffer bytes;
  switch (layout) {
    case LayoutId::kRowMajor:
      bytes = pack_row_major(rows, k, scheme);
      break;
    case LayoutId::kCpuPanel8:
      bytes = CpuPanel8::pack(rows, k);
      break;
    case LayoutId::kCpuPanel16:
      bytes = CpuPanel16::pack(rows, k);
      break;
    default:
      MX8_CHECK(false, spec.name, layout_name(layout));
  }
  return PackedWeight(layout, spec.order, scheme, static_cast<int64_t>(rows.size()), k,
                      std::move(bytes));
}

// Checks and, for MXFP8, selection and packing of one matrix.
struct Prepared {
  PackedWeight weight;
  LinearPlan plan;
};

Result<Prepared> prepare(const DeviceCaps& caps, const LinearSpec& spec,
                         std::span<const QuantView> parts, int experts) {
  MX8_RETURN_IF_ERROR(check_parts(caps, spec, parts));
  Prepared out;
  if (parts[0].scheme.is_mxfp8()) {
    MX8_TRY(const LinearProblem problem, problem_of(caps, spec, parts, experts));
    MX8_TRY(out.plan, plan_of(caps, spec, problem));
  }
  out.weight = pack_parts(spec, parts, out.plan.layout);
  return out;
}

// The same on a GPU, where the layer owns its packing.
struct DevicePrepared {
  cuda::DeviceLinear device;
  LinearPlan plan;
};

Result<DevicePrepared> prepare_on_gpu(const DeviceCaps& caps, const LinearSpec& spec,
                                      std::span<const QuantView> parts,
                                      std::span<const float> bias) {
  MX8_RETURN_IF_ERROR(check_parts(caps, spec, parts));
  if (caps.forced) {
    return unsupported(
        str_cat(spec.name, ": ", caps.name, " is the record of a device, not one of this machine"));
  }
  MX8_TRY(const LinearProblem problem, problem_of(caps, spec, parts, 0));
  DevicePrepared out;
  MX8_TRY(out.plan, plan_of(caps, spec, problem));
  auto device = cuda::DeviceLinear::load(caps, problem, out.plan, parts, bias);
  if (!device.ok()) {
    return Error{device.error().code, str_cat(spec.name, ": ", device.error().message)};
  }
  out.device = std::move(device).value();
  return out;
}

// The shapes and types that both kinds of device ask for.
void check_call(const std::string& name, const PackedWeight& weight, DType activation, const Mat& x,
                const Mat& y, const Epilogue& epilogue) {
  const bool silu_mul = epilogue.kind == EpilogueKind::kSiluMul;
  const int64_t cols = silu_mul ? weight.n() / 2 : weight.n();
  MX8_CHECK(x.dtype == activation, name, dtype_name(x.dtype), dtype_name(activation));
  MX8_CHECK(x.cols == weight.k() && y.cols == cols, name, x.cols, weight.k(), y.cols, cols);
  MX8_CHECK(x.ld >= x.cols && y.ld >= y.cols, name, x.ld, y.ld);
  MX8_CHECK(!silu_mul || weight.order() == RowOrder::kGateUpInterleaved, name);
  if (epilogue.kind == EpilogueKind::kResidual) {
    const Mat& r = epilogue.residual;
    MX8_CHECK(r.dtype == y.dtype && r.rows == y.rows && r.cols == y.cols, name, r.rows, y.rows,
              r.cols, y.cols, dtype_name(r.dtype), dtype_name(y.dtype));
  }
}

LinearOutput output_of(const PackedWeight& weight, std::span<const float> bias, const Mat& x,
                       const Mat& y, const Epilogue& epilogue, const std::string& name) {
  MX8_CHECK(y.dtype == DType::kF32, name, dtype_name(y.dtype));
  check_call(name, weight, DType::kF32, x, y, epilogue);
  LinearOutput out{};
  out.y = y.f32_data();
  out.ldy = y.ld;
  out.n = weight.n();
  out.bias = bias.empty() ? nullptr : bias.data();
  switch (epilogue.kind) {
    case EpilogueKind::kNone:
      out.op = LinearEpilogue::kNone;
      break;
    case EpilogueKind::kSiluMul:
      out.op = LinearEpilogue::kSiluMul;
      break;
    case EpilogueKind::kResidual: {
      const Mat& r = epilogue.residual;
      out.op = LinearEpilogue::kResidual;
      out.residual = r.f32_data();
      out.ldr = r.ld;
      break;
    }
  }
  return out;
}

}  // namespace

Result<Linear> Linear::load(const DeviceCaps& caps, const LinearSpec& spec,
                            std::span<const QuantView> parts, std::span<const float> bias) {
  int64_t n = 0;
  for (const QuantView& part : parts) n += part.rows;
  if (!bias.empty() && static_cast<int64_t>(bias.size()) != n) {
    return invalid_argument(
        str_cat(spec.name, ": a bias of ", bias.size(), " elements for ", n, " output features"));
  }
  Linear linear;
  linear.name_ = spec.name;
  if (caps.kind == DeviceKind::kCuda) {
    MX8_TRY(DevicePrepared prepared, prepare_on_gpu(caps, spec, parts, bias));
    linear.activation_ = spec.activation;
    linear.plan_ = std::move(prepared.plan);
    linear.device_ = std::move(prepared.device);
    linear.weight_ =
        PackedWeight(linear.plan_.layout, spec.order, parts[0].scheme, n, parts[0].cols, Buffer());
    return linear;
  }
  MX8_TRY(Prepared prepared, prepare(caps, spec, parts, 0));
  linear.weight_ = std::move(prepared.weight);
  linear.plan_ = std::move(prepared.plan);
  for (int64_t i = 0; i < static_cast<int64_t>(bias.size()); ++i) {
    linear.bias_.push_back(bias[source_row(spec.order, i, n)]);
  }
  return linear;
}

void Linear::apply(const Exec& exec, const Mat& x, const Mat& y, const Epilogue& epilogue) const {
  MX8_CHECK(x.rows == y.rows, name_, x.rows, y.rows);
  if (device_.loaded()) {
    MX8_CHECK(exec.device == DeviceKind::kCuda, name_);
    MX8_CHECK(exec.device_workspace_bytes >= workspace_bytes(), name_, exec.device_workspace_bytes,
              workspace_bytes());
    check_call(name_, weight_, activation_, x, y, epilogue);
    // An interleaved weight has no other use than this.
    MX8_CHECK((weight_.order() == RowOrder::kGateUpInterleaved) ==
                  (epilogue.kind == EpilogueKind::kSiluMul),
              name_);
    const auto done = device_.launch({x, y, epilogue.residual}, exec.device_workspace, exec.stream);
    MX8_CHECK(done.ok(), name_, done.error().message);
    return;
  }
  MX8_CHECK(exec.device == DeviceKind::kCpu, name_);
  const LinearOutput out = output_of(weight_, bias_, x, y, epilogue, name_);
  if (x.rows == 0) return;
  const cpu::LinearJob job{&weight_, 0, x.rows};
  cpu::run_linear(exec, {&job, 1}, {x.f32_data(), x.ld, nullptr, x.rows, x.cols}, out);
}

void Linear::decode_row(int64_t n, float* out) const {
  MX8_CHECK(!device_.loaded(), name_);
  MX8_CHECK(n >= 0 && n < weight_.n() && weight_.order() == RowOrder::kPlain, name_, n);
  cpu::decode_row(weight_, n, out);
}

Result<GroupedLinear> GroupedLinear::begin(const DeviceCaps& caps, const LinearSpec& spec,
                                           int experts) {
  MX8_CHECK(experts > 0, spec.name, experts);
  GroupedLinear grouped;
  grouped.caps_ = caps;
  grouped.spec_ = spec;
  grouped.expected_ = experts;
  grouped.weights_.reserve(static_cast<size_t>(experts));
  return grouped;
}

Result<void> GroupedLinear::add(std::span<const QuantView> parts) {
  MX8_CHECK(experts() < expected_, spec_.name, expected_);
  LinearSpec spec = spec_;
  spec.name = str_cat(spec_.name, ", expert ", experts());
  // An expert whose scales lie outside a fast kernel's range gets a layout of its own.
  MX8_TRY(Prepared prepared, prepare(caps_, spec, parts, expected_));
  if (weights_.empty()) {
    plan_ = std::move(prepared.plan);
  } else {
    const PackedWeight& first = weights_.front();
    const PackedWeight& weight = prepared.weight;
    if (weight.n() != first.n() || weight.k() != first.k() || weight.scheme() != first.scheme()) {
      return invalid_argument(str_cat(spec.name, ": ", describe(weight.scheme()), " [", weight.n(),
                                      ", ", weight.k(), "], but expert 0 is ",
                                      describe(first.scheme()), " [", first.n(), ", ", first.k(),
                                      "]; experts must be alike"));
    }
  }
  weights_.push_back(std::move(prepared.weight));
  return {};
}

Result<void> GroupedLinear::end() {
  if (experts() != expected_) {
    return invalid_argument(
        str_cat(spec_.name, ": ", experts(), " experts were found, ", expected_, " expected"));
  }
  return {};
}

void GroupedLinear::apply(const Exec& exec, const Mat& x, std::span<const int32_t> offsets,
                          std::span<const int32_t> rows, const Mat& y,
                          const Epilogue& epilogue) const {
  MX8_CHECK(exec.device == DeviceKind::kCpu && experts() == expected_, spec_.name, experts());
  MX8_CHECK(offsets.size() == weights_.size() + 1 && offsets[0] == 0, spec_.name, offsets.size());
  MX8_CHECK(offsets.back() == y.rows, spec_.name, offsets.back(), y.rows);
  MX8_CHECK(rows.empty() ? x.rows == y.rows : static_cast<int64_t>(rows.size()) == y.rows,
            spec_.name, x.rows, y.rows, rows.size());
  for (int32_t row : rows) MX8_CHECK(row >= 0 && row < x.rows, spec_.name, row, x.rows);
  const LinearOutput out = output_of(weights_.front(), {}, x, y, epilogue, spec_.name);
  if (y.rows == 0) return;
  const Arena::Scope scope(*exec.workspace);
  auto* jobs = exec.workspace->alloc<cpu::LinearJob>(experts());
  for (int e = 0; e < experts(); ++e) {
    MX8_CHECK(offsets[e] <= offsets[e + 1], spec_.name, e, offsets[e], offsets[e + 1]);
    jobs[e] = {&weights_[e], offsets[e], offsets[e + 1] - offsets[e]};
  }
  cpu::run_linear(exec, {jobs, weights_.size()},
                  {x.f32_data(), x.ld, rows.empty() ? nullptr : rows.data(), y.rows, x.cols}, out);
}

size_t GroupedLinear::resident_bytes() const {
  size_t total = 0;
  for (const PackedWeight& w : weights_) total += w.size();
  return total;
}

}  // namespace mx8
