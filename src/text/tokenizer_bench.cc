// Measures a tokenizer on a text, and writes what it made of it for tools/check_tokenizers.py.
//
//   tokenizer_bench FOLDER TEXT            MB/s of encode, decode and streaming decode
//   tokenizer_bench FOLDER TEXT --dump OUT for each chunk of TEXT (separated by a zero byte), in
//   two
//                                          modes (plain, with special tokens parsed and added):
//                                          u32 count, ids; then the decoded text of the second mode
//                                          as u32 bytes, text; and 1 or 0: streaming gave the same
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mmap_file.h"
#include "text/tokenizer.h"

namespace {

std::string stream_decode(const mx8::Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  mx8::Detokenizer stream(tokenizer, /*skip_special=*/false);
  std::string text;
  for (const int32_t id : ids) text += stream.push(id);
  return text + stream.flush();
}

void write_u32(std::FILE* out, size_t value) {
  const auto v = static_cast<uint32_t>(value);
  std::fwrite(&v, sizeof v, 1, out);
}

int dump(const mx8::Tokenizer& tokenizer, std::string_view text, const char* path) {
  std::FILE* out = std::fopen(path, "wb");
  if (out == nullptr) {
    std::fprintf(stderr, "cannot write %s\n", path);
    return 1;
  }
  while (!text.empty()) {
    const std::string_view chunk = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(chunk.size() + 1, text.size()));
    std::vector<int32_t> ids;
    for (const bool special : {false, true}) {
      ids = tokenizer.encode(chunk, {.add_special_tokens = special, .parse_special = special});
      write_u32(out, ids.size());
      std::fwrite(ids.data(), sizeof ids[0], ids.size(), out);
    }
    const std::string decoded = tokenizer.decode(ids, /*skip_special=*/false);
    write_u32(out, decoded.size());
    std::fwrite(decoded.data(), 1, decoded.size(), out);
    std::fputc(stream_decode(tokenizer, ids) == decoded ? 1 : 0, out);
  }
  return std::fclose(out) == 0 ? 0 : 1;
}

void measure(const mx8::Tokenizer& tokenizer, std::string_view text) {
  constexpr int kRuns = 5;
  double encode = 1e30, decode = 1e30, stream = 1e30;
  std::vector<int32_t> ids;
  const auto time = [](double& best, auto run) {
    const double start = mx8::now_seconds();
    run();
    best = std::min(best, mx8::now_seconds() - start);
  };
  size_t bytes = 0;
  for (int i = 0; i < kRuns; ++i) {
    time(encode, [&] { ids = tokenizer.encode(text); });
    time(decode, [&] { bytes = tokenizer.decode(ids).size(); });
    time(stream, [&] { bytes = stream_decode(tokenizer, ids).size(); });
  }
  const double mb = static_cast<double>(text.size()) * 1e-6;
  std::printf("%.2f MB, %zu ids, %zu bytes back; MB/s: encode %.1f, decode %.1f, streaming %.1f\n",
              mb, ids.size(), bytes, mb / encode, mb / decode, mb / stream);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && !(argc == 5 && std::strcmp(argv[3], "--dump") == 0)) {
    std::fprintf(stderr, "usage: tokenizer_bench FOLDER TEXT [--dump OUT]\n");
    return 2;
  }
  const double start = mx8::now_seconds();
  const auto tokenizer = mx8::Tokenizer::load(argv[1]);
  const double load = mx8::now_seconds() - start;
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  const auto file = mx8::MmapFile::open(argv[2]);
  if (!file) {
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    return 1;
  }
  const auto bytes = file.value().bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (argc == 5) return dump(*tokenizer, text, argv[4]);
  std::printf("load %.3f s; ", load);
  measure(*tokenizer, text);
  return 0;
}
