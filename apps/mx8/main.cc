// mx8: the command-line program. Each verb is one file of this folder.
#include <fcntl.h>
#include <malloc.h>

#include <csignal>
#include <cstdio>
#include <new>
#include <vector>

#include "base/strings.h"
#include "common.h"

namespace mx8 {
namespace {

// The names of all options of an app, for "did you mean".
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The verb whose arguments were being read when parsing failed.
const CLI::App& parsed_app(const CLI::App& app) {
  for (const CLI::App* sub : app.get_subcommands()) return parsed_app(*sub);
  return app;
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App& verb = parsed_app(app);
  std::string message = error.what();
  std::string hint;
  // The word after the verbs that were understood: of the program itself, or of `bench`.
  const int depth = &verb == &app ? 1 : 2;
  const std::string word = argc > depth ? argv[depth] : "";
  const std::vector<std::string> verbs = verb_names(verb);
  if (!verbs.empty() && !word.empty() && word.front() != '-') {
    const std::string near = nearest(word, verbs);
    message = str_cat("unknown verb ", word);
    hint = near.empty() ? str_cat("; known are ", join(verbs, ", "))
                        : str_cat("; did you mean ", near, "?");
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> left = verb.remaining();
    const std::string extra = left.empty() ? message : left.front();
    const std::string flag = extra.substr(0, extra.find('='));
    const bool is_flag = flag.rfind('-', 0) == 0;
    message = str_cat("unknown ", is_flag ? "flag " : "argument ", flag);
    const std::string near = is_flag ? nearest(flag, option_names(verb)) : "";
    if (!near.empty()) hint = str_cat("; did you mean ", near, "?");
  }
  std::fprintf(stderr, "mx8: %s%s (see '%s --help')\n", message.c_str(), hint.c_str(),
               verb.get_parent() == nullptr ? "mx8" : str_cat("mx8 ", verb.get_name()).c_str());
  return kExitBadUsage;
}

// The exit code of a run that went well, if its output could be written.
int finish_stdout() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return kExitDone;
  print_error(io_error("cannot write to standard output"));
  return kExitBadInput;
}

int run(int argc, char** argv) {
  CLI::App app("Runs LLMs with MXFP8 weights.", "mx8");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  struct Verb {
    CLI::App* app;
    VerbRunner run;
  };
  std::vector<Verb> verbs;
  auto add = [&](const char* name, const char* help, VerbRunner (*make)(CLI::App&)) {
    CLI::App* verb = app.add_subcommand(name, help);
    verbs.push_back({verb, make(*verb)});
  };
  add("generate", "Answer a prompt", add_generate);
  add("quantize", "Write an MXFP8 copy of a BF16 checkpoint", add_quantize);
  add("eval", "Perplexity of a text, and the divergence from another model", add_eval);
  add("bench", "Measure a model or the kernels", add_bench);
  add("inspect", "Show what a checkpoint holds, and check it", add_inspect);
  add("doctor", "Show what this machine would run, and why", add_doctor);
  add("make-dummy", "Write a checkpoint of seeded random weights", add_make_dummy);
  add("version", "Show the version", add_version);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return finish_stdout();
  } catch (const CLI::CallForAllHelp& help) {
    app.exit(help);
    return finish_stdout();
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, argc, argv);
  }
  for (Verb& verb : verbs) {
    if (!verb.app->parsed()) continue;
    const Result<void> result = verb.run();
    if (!result.ok()) {
      print_error(result.error());
      return kExitBadInput;
    }
  }
  return finish_stdout();
}

// A file that is opened later must not get the number of a standard stream that the caller closed:
// messages would be written into it. /dev/null for reading makes such writes fail instead.
void reserve_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDONLY);
  }
}

// Matrices come and go while a model is loaded. From maps of their own they go back to the system
// at once; glibc would by and by take them from the heap, where each leaves a gap of its size.
void keep_matrices_off_the_heap() {
#ifdef M_MMAP_THRESHOLD
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

}  // namespace
}  // namespace mx8

int main(int argc, char** argv) {
  mx8::reserve_standard_streams();
  mx8::keep_matrices_off_the_heap();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of write
  try {
    return mx8::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("mx8: out of memory; try a smaller --max-model-len or model\n", stderr);
    return mx8::kExitBadInput;
  }
}
