#include "text/jinja.h"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <sstream>

namespace mx8::jinja {
namespace {

using Json = nlohmann::ordered_json;

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

// The text, or "error: ..." from parsing or rendering.
std::string render(const std::string& source, const Json& variables = Json::object(),
                   const std::tm& now = {}, const RenderLimits& limits = {}) {
  auto parsed = Template::parse(source);
  if (!parsed.ok()) return "error: " + parsed.error().message;
  std::vector<Variable> list;
  for (const auto& [name, value] : variables.items()) list.push_back({name, value, true});
  auto text = parsed->render(list, now, limits);
  return text.ok() ? text->bytes() : "error: " + text.error().message;
}

TEST(JinjaSnippets, EqualPythonsJinja2) {
  Json goldens =
      Json::parse(read(std::string(MX8_SOURCE_DIR) + "/tests/data/templates/expressions.json"));
  std::tm now{};
  ASSERT_NE(strptime(goldens["now"].get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%S", &now),
            nullptr);
  std::mktime(&now);  // fills in the day of the week and of the year
  size_t texts = 0, errors = 0;
  for (const Json& c : goldens["cases"]) {
    const auto source = c["source"].get<std::string>();
    std::string got = render(source, goldens["variables"], now);
    if (c.contains("text")) {
      ++texts;
      EXPECT_EQ(got, c["text"].get<std::string>()) << source;
    } else {
      ++errors;
      EXPECT_TRUE(got.starts_with("error: "))
          << source << "\n  gave: " << got << "\n  jinja2: " << c["error"].get<std::string>();
    }
  }
  EXPECT_GT(texts, 600u);
  EXPECT_GT(errors, 80u);
}

// ---- What is left out is refused by name and line.

TEST(JinjaRefusals, NameTheConstructAndTheLine) {
  const std::pair<const char*, const char*> kCases[] = {
      {"a\nb\n{% include 'x' %}", "line 3: tag 'include' is not supported"},
      {"{% extends 'x' %}", "line 1: tag 'extends' is not supported"},
      {"{% block x %}{% endblock %}", "line 1: tag 'block' is not supported"},
      {"{% import 'x' as y %}", "line 1: tag 'import' is not supported"},
      {"{% from 'x' import y %}", "line 1: tag 'from' is not supported"},
      {"{% autoescape true %}{% endautoescape %}", "line 1: tag 'autoescape' is not supported"},
      {"{% do x %}", "line 1: tag 'do' is not supported"},
      {"\n{% frob %}", "line 2: unexpected tag 'frob'"},
      {"{% for x in y recursive %}{% endfor %}", "line 1: 'recursive' loops are not supported"},
      {"{{ x\n|frob }}", "line 2: filter 'frob' is not supported"},
      {"{% if x %}{{ x|urlize }}{% endif %}", "line 1: filter 'urlize' is not supported"},
      {"{{ x is frob }}", "line 1: test 'frob' is not supported"},
      {"{{ lipsum() }}", "line 1: function 'lipsum' is not supported"},
      {"{{ cycler(1) }}", "line 1: function 'cycler' is not supported"},
      {"{{ 'a'.encode() }}", "line 1: this method of 'str' is not supported"},
      {"{{ '\\N{BULLET}' }}", "line 1: string escape '\\N{...}' is not supported"},
      {"{{ 99999999999999999999 }}",
       "line 1: integer 99999999999999999999 needs more than 64 bits"},
      {"{{ 9223372036854775807 + 1 }}", "line 1: an integer outgrows 64 bits"},
      {"{% if x %}\n\n{{ y }", "line 3: unexpected '}'"},
      {"\n{# open", "line 2: missing end of comment"},
      {"{% if x %}", "line 1: missing '{% endif %}'"},
  };
  for (auto [source, expected] : kCases) {
    EXPECT_EQ(render(source), std::string("error: ") + expected) << source;
  }
  EXPECT_EQ(render("\xff"), "error: the template is not valid UTF-8");
}

// ---- Beyond jinja2's sandbox: lists may grow and shrink within one rendering.

TEST(JinjaExtensions, ListsAppendAndPop) {
  EXPECT_EQ(
      render("{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}{{ l.pop(0) }}{{ l.pop() }}{{ l }}"),
      "[1, 2]12[]");
  EXPECT_EQ(render("{% set l = [] %}{{ l.pop() }}"), "error: line 1: pop: index out of range");
  EXPECT_EQ(render("{{ '{\"a\": [1, 2.5, null]}'|from_json }}"), "{'a': [1, 2.5, None]}");
  EXPECT_EQ(render("{{ '{'|from_json }}"), "error: line 1: from_json: the text is not JSON");
}

// ---- Limits. Each of these would run away without one.

TEST(JinjaLimits, EndEveryRunaway) {
  const std::pair<const char*, const char*> kCases[] = {
      {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
       "takes more than"},
      {"{% set l = [1] %}{% for x in l %}{% set _ = l.append(1) %}{% endfor %}", "more than"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nests too deeply"},
      {"{{ 'a' * 1000000000000 }}", "a string of more than"},
      {"{{ [1] * 1000000000000 }}", "of memory"},
      {"{% set n = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% "
       "endfor %}",
       "a string of more than"},
      {"{% set n = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set n.s = n.s|replace('a', "
       "n.s) %}"
       "{% endfor %}",
       "a string of more than"},
      {"{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = [n.l] %}{% endfor %}{{ "
       "n.l }}",
       "nests too deeply"},
      {"{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor "
       "%}"
       "{{ n.l }}",
       "more than"},
      {"{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor "
       "%}"
       "{{ n.l == n.l }}{{ n.l|tojson }}",
       "more than"},
      {"{% set n = namespace() %}{% set n.n = n %}{{ n }}", "nests too deeply"},
      {"{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}", "nests too deeply"},
      {"{{ 'a'.center(99999999999) }}", "a string of more than"},
      {"{{ '%99999999999d' % 1 }}", "width of a format is too large"},
      {"{{ 'a\nb'|indent(99999999999) }}", "a string of more than"},
      {"{{ range(999999999) }}", "more than 100000 items"},
      {"{{ [1]|batch(99999999999, 0)|list }}", "of memory"},
      {"{{ [1]|slice(99999999999)|list }}", "takes more than"},
      {"{{ 2 ** 63 }}", "outgrows 64 bits"},
  };
  RenderLimits limits;
  limits.steps = 300'000;
  limits.heap_bytes = 64 << 20;
  limits.text_bytes = 1 << 20;
  for (auto [source, expected] : kCases) {
    std::string got = render(source, Json::object(), {}, limits);
    EXPECT_TRUE(got.starts_with("error: ")) << source;
    EXPECT_NE(got.find(expected), std::string::npos)
        << source << "\n  gave: " << got.substr(0, 200);
  }
}

TEST(JinjaLimits, DeepSourcesAreRefusedNotFollowed) {
  auto repeat = [](const std::string& s, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += s;
    return out;
  };
  const int n = 20000;
  for (const std::string& source :
       {"{{ " + repeat("(", n) + "1" + repeat(")", n) + " }}",
        "{{ " + repeat("[", n) + repeat("]", n) + " }}", "{{ " + repeat("-", n) + "1 }}",
        "{{ " + repeat("not ", n) + "1 }}", "{{ 1" + repeat("+1", n) + " }}",
        "{{ a" + repeat(".a", n) + " }}", "{{ a" + repeat("|e", n) + " }}",
        "{{ a" + repeat("()", n) + " }}", "{{ 1" + repeat(" if 1 else 1", n) + " }}",
        repeat("{% if 1 %}", n), repeat("{% for x in y %}", n), "{% set " + repeat("(", n) + "x",
        "{{ 1" + repeat(" is odd", n) + " }}"}) {
    std::string got = render(source);
    EXPECT_TRUE(got.starts_with("error: line 1: ")) << source.substr(0, 40) << got.substr(0, 100);
  }
  // Flat repetition is no depth.
  EXPECT_EQ(render("{{ 'a'" + repeat(" ~ 'a'", 5000) + " }}").size(), 5001u);
  EXPECT_EQ(render("{% if 0 %}" + repeat("{% elif 0 %}", 5000) + "{% else %}x{% endif %}"), "x");
}

TEST(JinjaLimits, RecursionOfAReasonableDepthWorks) {
  EXPECT_EQ(
      render("{% macro m(n) %}{% if n > 0 %}.{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100) }}")
          .size(),
      100u);
}

}  // namespace
}  // namespace mx8::jinja
