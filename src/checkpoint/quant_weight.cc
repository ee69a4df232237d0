#include "checkpoint/quant_weight.h"

#include "base/strings.h"
#include "tensor/plain_values.h"

namespace mx8 {

namespace {

constexpr const char* kScaleSuffixes[] = {".weight_scale", ".weight_scale_inv"};

// The name of the module's scales in the files, "" where there are none. A source without files
// makes ".weight_scale" for modules that are `expected` to be quantised.
std::string scales_name(const TensorSource& source, const std::string& module, bool expected) {
  for (const char* suffix : kScaleSuffixes) {
    const bool first = suffix == kScaleSuffixes[0];
    if (source.has(module + suffix, expected && first)) return module + suffix;
  }
  return "";
}

Error stored_plain(const std::string& module, const ModuleQuant& quant) {
  const std::string why =
      quant.reason.empty() ? "the quantisation config" : "its entry " + quant.reason;
  return corrupt(str_cat(module, ": ", why, " says ", describe(quant.scheme),
                         ", but the files hold no ", module,
                         ".weight_scale; list the module as not quantised if it is not"));
}

Error stored_quantised(const std::string& module, const std::string& scales,
                       const ModuleQuant& quant, const std::string& dialect) {
  const std::string why = quant.reason.empty() ? "it is not among the quantised modules"
                                               : "its entry is " + quant.reason;
  return corrupt(str_cat(module, ": the files hold ", scales, ", but the quantisation config (",
                         dialect, ") has the module as not quantised: ", why));
}

// Producers count routers and heads neither among the quantised modules nor among the others.
bool may_be_either(ModuleKind kind, const ModuleQuant& quant) {
  return quant.by_default && (kind == ModuleKind::kRouter || kind == ModuleKind::kLmHead);
}

Result<void> load_scales(TensorSource& source, const std::string& name, int64_t rows, int64_t cols,
                         ShardSpec shard, LoadedWeight& out) {
  TensorRequest request{name, TensorKind::kScales, {DType::kU8, DType::kF8E8M0}, {}, shard};
  request.shape = {rows, cols / kMxBlock};
  request.shard.multiple = 1;
  MX8_TRY(out.scales, source.load(request));
  return {};
}

}  // namespace

QuantView LoadedWeight::view() const {
  const std::vector<int64_t>& shape = codes.shape();
  MX8_CHECK(shape.size() == 2, name);
  return {codes.bytes().data(), scheme.is_plain() ? nullptr : scales.bytes().data(), shape[0],
          shape[1], scheme};
}

Result<LoadedWeight> load_quant_weight(TensorSource& source, const QuantPlan& plan,
                                       const std::string& module, ModuleKind kind, int64_t rows,
                                       int64_t cols, const ShardSpec& shard) {
  MX8_TRY(const ModuleQuant quant, plan.module(module, kind));
  const bool want_scales = !quant.scheme.is_plain() && !quant.quantize_at_load;
  const std::string scales = scales_name(source, module, want_scales);
  if (!want_scales && !scales.empty()) {
    return stored_quantised(module, scales, quant, plan.dialect());
  }
  const bool quantised = want_scales && !scales.empty();
  if (want_scales && !quantised && !may_be_either(kind, quant)) return stored_plain(module, quant);
  const bool mx = quantised || quant.quantize_at_load;
  if (mx && cols % kMxBlock != 0) {
    return unsupported(str_cat(module, " has ", cols, " input features; MXFP8 needs a multiple of ",
                               kMxBlock, ": list it as not quantised"));
  }

  LoadedWeight out;
  out.name = module;
  out.quantize_at_load = quant.quantize_at_load;
  if (quant.quantize_at_load) out.target = quant.scheme;
  TensorRequest request{
      module + ".weight", TensorKind::kWeight, plain_dtypes(), {rows, cols}, shard};
  if (quantised) {
    request.kind = TensorKind::kCodes;
    request.dtypes = {DType::kF8E4M3};
  }
  const bool by_cols = shard.axis == ShardSpec::Axis::kCols;
  if (mx && by_cols) request.shard.multiple = kMxBlock;
  MX8_TRY(out.codes, source.load(request));
  out.scheme = quantised ? quant.scheme : QuantScheme::plain(out.codes.dtype());
  if (quantised) MX8_RETURN_IF_ERROR(load_scales(source, scales, rows, cols, shard, out));
  return out;
}

void release_quant_weight(TensorSource& source, const LoadedWeight& weight) {
  source.release(weight.name + ".weight");
  const std::string scales = weight.scheme.is_plain() ? "" : scales_name(source, weight.name, true);
  if (!scales.empty()) source.release(scales);
}

}  // namespace mx8
