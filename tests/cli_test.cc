// The program from the outside, on the small checkpoints of tests/data.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli_support.h"

namespace mx8 {
namespace {

const std::string kData = MX8_SOURCE_DIR "/tests/data/";
const std::string kTiny = kData + "tiny/llama_mxfp8";

nlohmann::json json_of(const RunResult& r) {
  EXPECT_EQ(r.code, 0) << r.err;
  auto json = nlohmann::json::parse(r.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << r.out;
  return json;
}

TEST(Cli, ExitCodesAndTheirOneLine) {
  struct Row {
    const char* arguments;
    int code;
    const char* message;
  };
  const Row rows[] = {
      {"generate /nowhere --prompt x", 1, "/nowhere is not a folder"},
      {"generate", 2, "model is required"},
      {"generate m", 1, "no prompt"},
      {"generate m --promt x", 2, "unknown flag --promt; did you mean --prompt?"},
      {"generate m --prompt x --max-token 3", 2, "did you mean --max-tokens?"},
      {"generate m --prompt x --temperature hot", 2, "--temperature"},
      {"generate m --prompt x --max-tokens 0", 2, "--max-tokens"},
      {"generate m --prompt x --load disk", 2, "--load"},
      {"generate m --prompt x --prompt-file y", 2, "--prompt"},
      {"generate m --prompt-file /nowhere.txt", 1, "cannot read /nowhere.txt"},
      {"generat", 2, "unknown verb generat; did you mean generate?"},
      {"", 2, "subcommand is required"},
      {"quantize /nowhere out", 1, "/nowhere"},
      {"quantize a b --scale-rule up", 2, "--scale-rule"},
      {"eval m", 2, "--text is required"},
      {"bench modle", 2, "modle"},
      {"inspect /nowhere", 1, "/nowhere"},
      {"make-dummy /nowhere out", 1, "/nowhere"},
      {"version --jsn", 2, "did you mean --json?"},
  };
  for (const Row& row : rows) {
    const RunResult r = run_mx8(row.arguments);
    EXPECT_EQ(r.code, row.code) << row.arguments << "\n" << r.err;
    EXPECT_NE(error_line(r).find(row.message), std::string::npos) << row.arguments << "\n" << r.err;
    EXPECT_EQ(r.out, "") << row.arguments;
  }
}

TEST(Cli, VersionAndHelp) {
  EXPECT_EQ(json_of(run_mx8("version --json"))["version"], "0.1.0");
  for (const char* verb : {"", "generate", "quantize", "eval", "bench", "bench model",
                           "bench kernels", "inspect", "doctor", "make-dummy", "version"}) {
    const RunResult r = run_mx8(std::string(verb) + " --help");
    EXPECT_EQ(r.code, 0) << verb;
    EXPECT_NE(r.out.find("--help"), std::string::npos) << verb;
  }
}

TEST(Cli, DoctorExplainsEveryDevice) {
  const auto here = json_of(run_mx8("doctor --json"));
  EXPECT_FALSE(here["selection"].empty());
  EXPECT_EQ(here["architectures"].size(), 7u);
  for (const char* device : {"sm75", "sm80", "sm86", "sm89", "sm90", "sm100", "sm120", "cpu-scalar",
                             "cpu-avx2", "cpu-avx512", "cpu-amx"}) {
    const std::string force = std::string("MX8_FORCE_CAPS=") + device;
    const auto forced = json_of(run_mx8("doctor --json", force));
    EXPECT_TRUE(forced["forced"]) << device;
    for (const auto& s : forced["selection"]) {
      EXPECT_TRUE(s.contains("backend") || s.contains("error")) << device;
      if (!s.contains("refused")) continue;
      for (const auto& refusal : s["refused"]) EXPECT_NE(refusal["reason"], "") << device;
    }
    EXPECT_EQ(run_mx8("doctor", force).code, 0);
  }
  const RunResult bad = run_mx8("doctor", "MX8_FORCE_CAPS=sm99");
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(error_line(bad).find("sm120"), std::string::npos);
  EXPECT_EQ(run_mx8("doctor", "MX8_ISA=sse").code, 1);
  const auto kv = json_of(run_mx8("doctor " + kTiny + " --max-model-len 64 --json"))["kv_cache"];
  EXPECT_EQ(kv["max_model_len"], 64);
  EXPECT_GT(kv["bytes_per_token"], 0);
}

// For a GPU doctor names the kernel for each number of tokens, what was measured slower than
// cuBLAS, and what was never run, in every build.
TEST(Cli, DoctorShowsTheKernelsOfAGpu) {
  const auto sm90 = json_of(run_mx8("doctor --json", "MX8_FORCE_CAPS=sm90"))["selection"];
  const auto at = [](const nlohmann::json& selection, const std::string& problem,
                     const std::string& weights) {
    for (const auto& s : selection) {
      if (s["problem"] == problem && s["weights"] == weights) return s;
    }
    ADD_FAILURE() << problem << " " << weights << " in " << selection;
    return nlohmann::json();
  };
  const auto w8a16 = at(sm90, "linear 4096 x 4096", "mxfp8 (w8a16)");
  EXPECT_EQ(w8a16["backend"], "w8a16");
  EXPECT_EQ(w8a16["kernel"], "sm90_mxfp8_gemm_bf16");
  EXPECT_EQ(w8a16["unverified"], "");
  EXPECT_GT(w8a16["buckets"].size(), 3u);
  int64_t last = 0;
  for (const auto& b : w8a16["buckets"]) {
    EXPECT_GT(b["max_m"], last);
    EXPECT_NE(b["instance"], "");
    last = b["max_m"];
  }
  EXPECT_EQ(last, 8192);
  EXPECT_FALSE(at(sm90, "linear 5120 x 2048", "mxfp8 (w8a16)")["slower_than_bf16_cublas"].empty());
  for (const auto& selection : sm90) {
    if (selection.contains("error")) continue;
    for (const auto& s : selection["slower_than_bf16_cublas"]) {
      EXPECT_GT(s["ratio"], 0.2) << selection["problem"];
      EXPECT_LT(s["ratio"], 1) << selection["problem"];
    }
  }
  const auto w8a8 = at(sm90, "linear 4096 x 4096", "mxfp8 (w8a8)");
  EXPECT_EQ(w8a8["kernel"], "sm90_fp8_gemm");
  EXPECT_EQ(w8a8["activations"], "fp8-token-fragment");
  EXPECT_TRUE(at(sm90, "128 experts of 1536 x 2048", "mxfp8 (w8a8)").contains("error"));
  const auto text = run_mx8("doctor", "MX8_FORCE_CAPS=sm90").out;
  EXPECT_NE(text.find("slower than BF16 cuBLAS at M="), std::string::npos) << text;
  EXPECT_NE(text.find("measured on an H200"), std::string::npos) << text;
  EXPECT_NE(text.find("stream/"), std::string::npos) << text;
  EXPECT_EQ(text.find("compile-verified"), std::string::npos) << text;
  struct Row {
    const char* device;
    const char* kernel;
    const char* note;
  };
  for (const Row& row : {Row{"sm80", "sm80_mxfp8_gemm_bf16", "the kernel was run on an SM90 only"},
                         {"sm89", "sm89_fp8_gemm", "the kernel was run on an SM90 only"},
                         {"sm75", "emulated_mxfp8_gemm_fp16", "the kernel was run on an SM90 only"},
                         {"sm100", "sm100_mxfp8_gemm", "never run on this kind of GPU"},
                         {"sm121", "sm120_mxfp8_gemm", "never run on this kind of GPU"}}) {
    const std::string force = std::string("MX8_FORCE_CAPS=") + row.device;
    const auto s = at(json_of(run_mx8("doctor --json", force))["selection"], "linear 4096 x 4096",
                      "mxfp8 (w8a8)");
    EXPECT_EQ(s["kernel"], row.kernel) << row.device;
    const std::string note = s["unverified"];
    EXPECT_EQ(note.rfind("compile-verified only", 0), 0u) << row.device << " " << note;
    EXPECT_NE(note.find(row.note), std::string::npos) << row.device << " " << note;
    EXPECT_NE(run_mx8("doctor", force).out.find(note), std::string::npos) << row.device;
  }
  // A demand is followed or refused with the reason, and activations too.
  const auto forced = json_of(
      run_mx8("doctor --json --linear-backend emulation", "MX8_FORCE_CAPS=sm90"))["selection"];
  EXPECT_EQ(forced[0]["backend"], "emulation");
  EXPECT_EQ(forced[0]["buckets"][0]["instance"], "emulation");
  const auto fp8 =
      json_of(run_mx8("doctor --json --activations fp8", "MX8_FORCE_CAPS=sm90"))["selection"];
  EXPECT_EQ(at(fp8, "linear 4096 x 4096", "mxfp8 (w8a16)")["backend"], "fp8-folded");
  // The scheme of the weights is named where both are shown, not where activations are demanded.
  EXPECT_NE(text.find("linear 4096 x 4096, w8a16"), std::string::npos) << text;
  EXPECT_NE(text.find("linear 4096 x 4096, w8a8"), std::string::npos) << text;
  for (const char* activations : {"fp8", "bf16"}) {
    const auto one =
        run_mx8(std::string("doctor --activations ") + activations, "MX8_FORCE_CAPS=sm90").out;
    EXPECT_NE(one.find("linear 4096 x 4096  "), std::string::npos) << one;
    EXPECT_EQ(one.find(", w8a"), std::string::npos) << one;
  }
  const RunResult none = run_mx8("doctor", "MX8_FORCE_CAPS=sm80 MX8_LINEAR_BACKEND=block-scaled");
  EXPECT_NE(none.out.find("is for SM100, SM103; this is SM80"), std::string::npos) << none.out;
}

// Libraries and GPUs that are not here are reasons, not failures.
TEST(Cli, DoctorSaysWhatThereIsOfCuda) {
  const auto cuda = json_of(run_mx8("doctor --json"))["cuda"];
  EXPECT_EQ(cuda["built"], json_of(run_mx8("version --json"))["gpu_backend"]);
  EXPECT_NE(cuda["libcuda"], "");
  EXPECT_NE(cuda["cublaslt"], "");
  EXPECT_EQ(cuda["gpus"].empty() && cuda["unreadable_gpus"].empty(), cuda["no_gpus"] != "") << cuda;
  for (const auto& gpu : cuda["gpus"]) EXPECT_GT(gpu["memory_bytes"], 0);
  if (cuda["built"]) return;
  EXPECT_NE(cuda["no_gpus"].get<std::string>().find("MX8_CUDA=ON"), std::string::npos) << cuda;
  const auto sm90 = json_of(run_mx8("doctor --json", "MX8_FORCE_CAPS=sm90"))["selection"];
  EXPECT_EQ(sm90[0]["missing"],
            "not in this program: built without CUDA for SM90 (MX8_CUDA_ARCHITECTURES=90a has it)");
}

TEST(Cli, AGpuBackendOfAModelIsRefusedPlainly) {
  for (const char* backend : {"w8a16", "fp8-folded", "block-scaled", "emulation"}) {
    const RunResult r = run_mx8("bench model " + kTiny + " --prompt 4 --generate 2",
                                std::string("MX8_LINEAR_BACKEND=") + backend);
    EXPECT_EQ(r.code, 1);
    EXPECT_NE(error_line(r).find(std::string("backend ") + backend + " needs a GPU"),
              std::string::npos)
        << r.err;
    EXPECT_NE(error_line(r).find("models run on CPUs only"), std::string::npos) << r.err;
  }
}

TEST(Cli, ADeviceThatIsNotHereCannotBeRun) {
  const RunResult r =
      run_mx8("bench model " + kTiny + " --prompt 4 --generate 2", "MX8_FORCE_CAPS=sm90");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(error_line(r).find("H200"), std::string::npos) << r.err;
}

TEST(Cli, InspectShowsEveryDialect) {
  for (const char* name : {"ct_w8a8", "modelopt", "mxfp8_scale_inv", "auto_round", "ct_sharded"}) {
    const auto j =
        json_of(run_mx8("inspect " + kData + "checkpoints/" + name + " --check --tensors --json"));
    EXPECT_EQ(j["architecture"], "LlamaForCausalLM") << name;
    EXPECT_TRUE(j["problems"].empty()) << name << j["problems"];
    EXPECT_GT(j["tensors"].size(), 20u);
    int64_t mxfp8 = 0;
    for (const auto& [scheme, count] : j["schemes"].items()) {
      if (scheme.rfind("mxfp8", 0) == 0) mxfp8 += count.get<int64_t>();
    }
    EXPECT_EQ(mxfp8, 14) << name << j["schemes"];
  }
}

TEST(Cli, InspectFindsDamage) {
  TempFolder tmp;
  const std::string copy = tmp / "damaged";
  std::filesystem::copy(kTiny, copy, std::filesystem::copy_options::recursive);
  const auto tensors = json_of(run_mx8("inspect " + copy + " --tensors --json"))["tensors"];
  std::string blob = slurp(copy + "/model.safetensors");
  // The scales come last or first; set one whole U8 tensor to 255.
  const auto header =
      nlohmann::json::parse(blob.substr(8, *reinterpret_cast<const uint64_t*>(blob.data())));
  for (const auto& [name, entry] : header.items()) {
    if (name.find("down_proj.weight_scale") == std::string::npos) continue;
    const size_t base = 8 + *reinterpret_cast<const uint64_t*>(blob.data());
    blob[base + entry["data_offsets"][0].get<size_t>()] = '\xFF';
    break;
  }
  std::filesystem::remove(copy + "/model.safetensors");
  std::ofstream(copy + "/model.safetensors", std::ios::binary) << blob;
  const RunResult r = run_mx8("inspect " + copy + " --check");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.out.find("1 NaN scales"), std::string::npos) << r.out;
  const RunResult load = run_mx8("bench model " + copy + " --prompt 4 --generate 2");
  EXPECT_EQ(load.code, 1);
  EXPECT_NE(error_line(load).find("down_proj"), std::string::npos) << load.err;
}

TEST(Cli, QuantizeThenRunGivesTheSameModelAsTheOracles) {
  TempFolder tmp;
  const auto report =
      json_of(run_mx8("quantize " + kData + "tiny/llama " + (tmp / "q") + " --verify --json"));
  EXPECT_EQ(report["quantised_modules"], 14);
  EXPECT_GT(report["verified_blocks"], 0);
  EXPECT_EQ(json_of(run_mx8("inspect " + (tmp / "q") + " --check --json"))["problems"].size(), 0u);
  const RunResult again = run_mx8("quantize " + kData + "tiny/llama " + (tmp / "q"));
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(error_line(again).find("--overwrite"), std::string::npos);
}

// Copies a folder with `prefix` before the name of every tensor.
void copy_with_prefix(const std::string& from, const std::string& to, const std::string& prefix) {
  std::filesystem::create_directory(to);
  std::filesystem::copy(from + "/config.json", to);
  const std::string blob = slurp(from + "/model.safetensors");
  const size_t length = *reinterpret_cast<const uint64_t*>(blob.data());
  const auto old = nlohmann::json::parse(blob.substr(8, length));
  nlohmann::json header;
  for (const auto& [name, entry] : old.items())
    header[name == "__metadata__" ? name : prefix + name] = entry;
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t size = text.size();
  std::ofstream out(to + "/model.safetensors", std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), sizeof(size));
  out << text << blob.substr(8 + length);
}

// Tied (qwen2) and with a head of its own (llama), head quantised and not, names with and without
// a prefix: inspect finds nothing wrong, and the model that is loaded has what was asked for.
TEST(Cli, WhatQuantizeWritesIsReadBack) {
  TempFolder tmp;
  for (const char* name : {"qwen2", "llama"}) {
    for (const char* prefix : {"", "language_model.", "model."}) {
      const std::string in = tmp / (std::string(name) + prefix);
      copy_with_prefix(kData + "tiny/" + name, in, prefix);
      for (const bool head : {false, true}) {
        for (const char* format : {"compressed-tensors", "modelopt"}) {
          const std::string out = in + (head ? "head" : "") + format;
          SCOPED_TRACE(out);
          const RunResult made =
              run_mx8("quantize " + in + " " + out + " --verify --format " + format +
                      (head ? " --include lm_head" : ""));
          ASSERT_EQ(made.code, 0) << made.err;
          EXPECT_EQ(run_mx8("inspect " + in + " --check").code, 0);
          const RunResult inspected = run_mx8("inspect " + out + " --check");
          EXPECT_EQ(inspected.code, 0) << inspected.out;
          const RunResult loaded =
              run_mx8("bench model " + out + " --prompt 4 --generate 2 --reps 1");
          EXPECT_EQ(loaded.code, 0) << loaded.err;
          EXPECT_EQ(loaded.err.find("warning"), std::string::npos) << loaded.err;
          EXPECT_EQ(loaded.err.find("lm_head mxfp8") != std::string::npos, head) << loaded.err;
        }
      }
    }
  }
}

TEST(Cli, MakeDummyIsSeededAndRuns) {
  TempFolder tmp;
  for (const char* name : {"qwen3_moe", "mixtral_mxfp8", "qwen2_moe_mxfp8", "llama_mxfp8"}) {
    const std::string config = kData + "tiny/" + name;
    const std::string a = tmp / (std::string(name) + "a"), b = tmp / (std::string(name) + "b");
    const std::string c = tmp / (std::string(name) + "c");
    EXPECT_EQ(run_mx8("make-dummy " + config + " " + a + " --seed 5").code, 0) << name;
    EXPECT_EQ(run_mx8("make-dummy " + config + "/config.json " + b + " --seed 5").code, 0) << name;
    EXPECT_EQ(run_mx8("make-dummy " + config + " " + c + " --seed 6").code, 0) << name;
    EXPECT_EQ(slurp(a + "/model.safetensors"), slurp(b + "/model.safetensors")) << name;
    EXPECT_NE(slurp(a + "/model.safetensors"), slurp(c + "/model.safetensors")) << name;
    EXPECT_EQ(json_of(run_mx8("inspect " + a + " --check --json"))["problems"].size(), 0u) << name;
    const auto bench =
        json_of(run_mx8("bench model " + a + " --prompt 8 --generate 4 --reps 1 --json"));
    EXPECT_GT(bench["decode_tokens_per_s"], 0) << name;
    // The same numbers without a file.
    const RunResult dummy =
        run_mx8("bench model " + config + " --load-format dummy --dummy-seed 5" +
                " --prompt 8 --generate 4 --reps 1 --json");
    EXPECT_EQ(dummy.code, 0) << name << dummy.err;
  }
}

TEST(Cli, MakeDummyTakesTheCompanionsAlong) {
  namespace fs = std::filesystem;
  TempFolder tmp;
  const std::string from = tmp / "from", to = tmp / "to";
  fs::copy(kData + "tiny/llama_mxfp8", from, fs::copy_options::recursive);
  for (const char* name :
       {"tokenizer.json", "chat_template.jinja", "merges.txt", "LICENSE", "generation_config.json",
        "consolidated.safetensors", "old.bin", "pytorch_model.bin.index.json", ".cache"})
    std::ofstream(from + "/" + name) << "{}";
  fs::create_directory(from + "/onnx");
  ASSERT_EQ(run_mx8("make-dummy " + from + " " + to).code, 0);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(to)) names.insert(entry.path().filename());
  for (const char* name :
       {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja", "merges.txt",
        "LICENSE", "generation_config.json"})
    EXPECT_EQ(names.erase(name), 1u) << name;
  for (const char* name :
       {"consolidated.safetensors", "old.bin", "pytorch_model.bin.index.json", ".cache", "onnx"})
    EXPECT_EQ(names.count(name), 0u) << name;
}

// A lone config.json may lie in anyone's working folder.
TEST(Cli, MakeDummyOfALoneConfigTakesModelTextsOnly) {
  namespace fs = std::filesystem;
  TempFolder tmp;
  const std::string from = tmp / "from", to = tmp / "to";
  fs::create_directory(from);
  fs::copy(kTiny + "/config.json", from);
  std::set<std::string> wanted = {"generation_config.json", "tokenizer.json",
                                  "tokenizer_config.json", "chat_template.jinja"};
  for (const std::string& name : wanted) std::ofstream(from + "/" + name) << "{}";
  for (const char* name : {"letter.txt", "secrets.json", "my_config.json", "page.jinja",
                           "tokenizer_notes.md", "LICENSE"})
    std::ofstream(from + "/" + name) << "{}";
  const RunResult r = run_mx8("make-dummy " + from + "/config.json " + to);
  ASSERT_EQ(r.code, 0) << r.err;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(to)) names.insert(entry.path().filename());
  wanted.insert({"config.json", "model.safetensors"});
  EXPECT_EQ(names, wanted);
}

TEST(Cli, BenchModelReportsWhatItSays) {
  const auto j = json_of(
      run_mx8("bench model " + kTiny + " --prompt 16 --generate 4 --batch 3 --reps 2 --json"));
  for (const char* key :
       {"prompt_tokens_per_s", "decode_tokens_per_s", "first_token_s", "peak_rss_bytes"}) {
    EXPECT_TRUE(j[key].is_number()) << key;
    EXPECT_GT(j[key], 0) << key;
  }
  EXPECT_EQ(j["batch"], 3);
}

TEST(Cli, OnlineQuantisationAndItsLists) {
  const std::string plain = kData + "tiny/llama";
  const RunResult r =
      run_mx8("bench model " + plain +
              " --quantization mxfp8 --quantize-ignore mlp --prompt 4 --generate 2 --reps 1");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("8 linears mxfp8"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("6 linears bf16"), std::string::npos) << r.err;
  const RunResult twice =
      run_mx8("bench model " + kTiny + " --quantization mxfp8 --prompt 4 --generate 2");
  EXPECT_EQ(twice.code, 1) << twice.err;
  const RunResult lists =
      run_mx8("bench model " + plain + " --quantize-ignore mlp --prompt 4 --generate 2");
  EXPECT_EQ(lists.code, 1);
  EXPECT_NE(error_line(lists).find("--quantization"), std::string::npos);
}

TEST(Cli, ForcedBackendsRunOrSayWhyNot) {
  const std::string bench = "bench model " + kTiny + " --prompt 4 --generate 2 --reps 1";
  EXPECT_EQ(run_mx8(bench + " --linear-backend cpu-scalar").code, 0);
  EXPECT_EQ(run_mx8(bench, "MX8_LINEAR_BACKEND=cpu-scalar").code, 0);
  const RunResult gpu = run_mx8(bench + " --linear-backend w8a16");
  EXPECT_EQ(gpu.code, 1);
  EXPECT_NE(error_line(gpu).find("needs a GPU"), std::string::npos) << gpu.err;
  const RunResult unknown = run_mx8(bench + " --linear-backend marlin");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(error_line(unknown).find("cpu-avx2"), std::string::npos) << unknown.err;
}

TEST(Cli, ContextLimitsNameTheNumbers) {
  const RunResult r =
      run_mx8("bench model " + kTiny + " --prompt 16 --generate 4 --max-model-len 18");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(error_line(r).find("18"), std::string::npos) << r.err;
  const RunResult small =
      run_mx8("bench model " + kTiny + " --prompt 64 --generate 4 --kv-memory 1KiB");
  EXPECT_EQ(small.code, 1);
  EXPECT_NE(error_line(small).find("KV"), std::string::npos) << small.err;
}

}  // namespace
}  // namespace mx8
