// Runs the mx8 program as a user would, for the end-to-end tests.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace mx8 {

struct RunResult {
  int code = -1;    // exit code; 128 + the signal that ended it
  std::string out;  // standard output
  std::string err;  // standard error
};

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A folder of this process that goes away at the end.
class TempFolder {
 public:
  TempFolder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("mx8_cli_" + std::to_string(::getpid()) + "_" + std::to_string(++count));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// `arguments` are words for the shell; quote what needs it.
inline RunResult run_mx8(const std::string& arguments, const std::string& environment = "") {
  static TempFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  const std::string command = environment + " '" MX8_PROGRAM "' " + arguments + " >'" + out +
                              "' 2>'" + err + "' </dev/null";
  const int status = std::system(command.c_str());
  RunResult r;
  r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  r.out = slurp(out);
  r.err = slurp(err);
  return r;
}

// The line of `err` that reports the error.
inline std::string error_line(const RunResult& r) {
  const size_t at = r.err.find("mx8: ");
  return at == std::string::npos ? "" : r.err.substr(at, r.err.find('\n', at) - at);
}

}  // namespace mx8
