#include "gemm_bench_peers.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/strings.h"

namespace mx8::bench {
namespace {

struct Scanner {
  const std::string& text;
  size_t at = 0;

  char peek() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
    return at < text.size() ? text[at] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at;
    return true;
  }
  std::string string() {
    std::string s;
    if (!take('"')) return s;
    while (at < text.size() && text[at] != '"') s += text[at++];
    ++at;
    return s;
  }
};

// An object at the scanner's place; false at anything unexpected.
bool read_object(Scanner& in, const std::string& prefix, PeerTable& out) {
  if (!in.take('{')) return false;
  if (in.take('}')) return true;
  do {
    const std::string key = prefix + in.string();
    if (!in.take(':')) return false;
    if (in.peek() == '{') {
      if (!read_object(in, key + "/", out)) return false;
    } else if (in.peek() == 'n') {
      in.at += 4;  // null: not measured
    } else {
      char* end = nullptr;
      out[key] = std::strtod(in.text.c_str() + in.at, &end);
      if (end == in.text.c_str() + in.at) return false;
      in.at = static_cast<size_t>(end - in.text.c_str());
    }
  } while (in.take(','));
  return in.take('}');
}

}  // namespace

Result<PeerTable> read_peer_table(const std::string& path) {
  std::ifstream file(path);
  if (!file) return not_found(str_cat(path, ": cannot be opened"));
  std::stringstream buffer;
  buffer << file.rdbuf();
  const std::string text = buffer.str();
  Scanner in{text};
  PeerTable table;
  if (!read_object(in, "", table))
    return corrupt(str_cat(path, ": not an object of numbers near byte ", in.at));
  return table;
}

}  // namespace mx8::bench
