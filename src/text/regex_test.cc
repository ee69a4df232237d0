#include "text/regex.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "text/utf8.h"

namespace mx8::text {
namespace {

std::vector<std::string> matches(const std::string& pattern, const std::string& subject) {
  const auto regex = Regex::compile(pattern);
  EXPECT_TRUE(regex.ok()) << regex.error().message;
  std::vector<Match> found;
  regex.value().find_all(subject, found);
  std::vector<std::string> out;
  for (const Match& m : found) out.push_back(subject.substr(m.begin, m.end - m.begin));
  return out;
}

using Strings = std::vector<std::string>;

TEST(Regex, ReadsOnigurumaWhereItDiffersFromPcre2) {
  struct Row {
    const char* pattern;
    const char* subject;
    Strings expected;
  };
  const Row rows[] = {
      {"\\s", "a\u180e\u2003\u0085\x0b", {"\u2003", "\u0085", "\x0b"}},
      {"\\S", "\u180e ", {"\u180e"}},
      {"[^\\s]", "\u180e\u00a0", {"\u180e"}},
      {"\\w+", "a\u0301_² \u20dd\u203f-", {"a\u0301_²", "\u20dd\u203f"}},
      {"\\W", "a\u0301 ", {" "}},
      {"\\d+", "1\u0661½", {"1\u0661"}},
      {"\\D", "1a", {"a"}},
      {"\\h+", "fg0 ", {"f", "0"}},
      {"\\v", "\n\x0b\u2028", {"\x0b"}},
      {"\\p{Han}", "漢\u3001あ", {"漢"}},
      {"\\p{Letter}+", "aé1", {"aé"}},
      {"\\P{L}", "a1", {"1"}},
      {"\\p{^L}", "a1", {"1"}},
      {"[\\p{L}\\p{N}]+", "\U00031350a1 \U0001fae8", {"\U00031350a1"}},
      {"\\p{S}", "\U0001fae8", {"\U0001fae8"}},
      {"(?i:'s|'t)", "'S 'T '\u017f", {"'S", "'T", "'\u017f"}},
      {"(?m:.)", "\n", {"\n"}},
      {".", "\n", {}},
      {"^a", "a\na", {"a", "a"}},
      {"a$", "a\na", {"a", "a"}},
      {"a{,2}b", "aaab", {"aab"}},
      {"a{", "a{", {"a{"}},
      {"\\u0041\\x42\\x{43}", "ABC", {"ABC"}},
      {"\\s+(?!\\S)|\\s+", "a   b  ", {"  ", " ", "  "}},
      {"x*", "axb", {"", "x", ""}},
      {"\\'\\/\\é", "'/é", {"'/é"}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(matches(row.pattern, row.subject), row.expected) << row.pattern;
  }
}

TEST(Regex, RefusesByNameWhatItCannotMatchFaithfully) {
  const char* patterns[] = {
      "\\bword",      "\\Bx",       "\\Gx",   "\\R",      "\\X",      "\\K",     "a\\1",
      "[[:alpha:]]",  "[a[b]]",     "[a&&b]", "(?x:a b)", "a(?i)b",   "(?<n>a)", "(?~abc)",
      "a{1,2}+",      "\\p{Alnum}", "\\pL",   "[\\W]",    "[\\P{L}]", "[\\D]",   "\\x80",
      "\\p{Klingon}", "[",          "(",      "a\\",      "[]",       "\\H",
  };
  for (const char* pattern : patterns) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_EQ(regex.error().code, ErrorCode::kUnsupported) << pattern;
    EXPECT_NE(regex.error().message.find(pattern), std::string::npos) << regex.error().message;
  }
}

TEST(Regex, LongRunsNeitherFailNorTakeQuadraticTime) {
  constexpr size_t kLength = size_t{1} << 20;
  const std::string pattern =
      "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
      "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  EXPECT_EQ(matches(pattern, std::string(kLength, 'a')).size(), 1u);
  EXPECT_EQ(matches(pattern, std::string(kLength, ' ') + "a").size(), 2u);
  EXPECT_EQ(matches(pattern, std::string(kLength, '=')).size(), 1u);
  EXPECT_EQ(matches(pattern, std::string(kLength, '\n')).size(), 1u);
  EXPECT_EQ(matches("(?:ab?)+", std::string(kLength, 'a')).size(), 1u);
}

TEST(Utf8, ReplacesMaximalInvalidParts) {
  struct Row {
    std::string bytes, expected;
    size_t held;  // bytes kept back when more may follow
  };
  const std::string r = "\xEF\xBF\xBD";
  const Row rows[] = {
      {"abc", "abc", 0},
      {"\xE2\x82\xAC", "\xE2\x82\xAC", 0},
      {"\xE2\x82", r, 2},
      {"a\xF0\x9F\x91", "a" + r, 3},
      {"\xE2\x82z", r + "z", 0},
      {"\xC0\xAF", r + r, 0},          // overlong
      {"\xED\xA0\x80", r + r + r, 0},  // surrogate
      {"\xF4\x90\x80\x80", r + r + r + r, 0},
      {"\xFF\xFE", r + r, 0},
      {"\x80", r, 0},
      {"\xE1\xE2\x82\xAC", r + "\xE2\x82\xAC", 0},
  };
  for (const Row& row : rows) {
    std::string whole, partial;
    append_lossy(whole, row.bytes, false);
    EXPECT_EQ(whole, row.expected);
    EXPECT_EQ(append_lossy(partial, row.bytes, true), row.bytes.size() - row.held);
    EXPECT_EQ(is_valid_utf8(row.bytes), whole == row.bytes);
    EXPECT_EQ(valid_utf8_prefix(row.bytes), std::min(row.expected.find(r), row.bytes.size()));
  }
}

}  // namespace
}  // namespace mx8::text
