#include "engine/stop_matcher.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace mx8 {
namespace {

struct Case {
  std::vector<std::string> stops;
  std::vector<std::string> pieces;
  bool include;
  std::vector<std::string> shown;  // after each piece
  std::string rest;                // of flush
  std::string matched;
};

TEST(StopMatcher, Table) {
  const Case cases[] = {
      // A prefix of a stop string is held back until it is ruled out.
      {{" 4 5 6"}, {" 3", " 4", " 5", " 7"}, false, {" 3", "", "", " 4 5 7"}, "", ""},
      {{" 4 5 6"}, {" 3", " 4", " 5", " 6", " 7"}, false, {" 3", "", "", "", ""}, "", " 4 5 6"},
      // Inside one token, across two, at the very first.
      {{"stop"}, {"a stop b"}, false, {"a "}, "", "stop"},
      {{"stop"}, {"st", "op"}, false, {"", ""}, "", "stop"},
      {{"stop"}, {"st", "op"}, true, {"", "stop"}, "", "stop"},
      // Held text comes out at the end.
      {{"\n\n"}, {"x\n"}, false, {"x"}, "\n", ""},
      // Common prefixes; the one complete first wins.
      {{"abcd", "bc"}, {"ab", "ce"}, false, {"", "a"}, "", "bc"},
      {{"abcd", "bcx"}, {"abc", "d"}, false, {"", ""}, "", "abcd"},
      {{"b", "ab"}, {"ab"}, false, {""}, "", "ab"},
      // Overlap with itself.
      {{"aab"}, {"a", "a", "a", "b"}, false, {"", "", "a", ""}, "", "aab"},
      {{}, {"a", "b"}, false, {"a", "b"}, "", ""},
  };
  for (const Case& c : cases) {
    StopMatcher m(c.stops, c.include);
    for (size_t i = 0; i < c.pieces.size(); ++i)
      EXPECT_EQ(m.push(c.pieces[i]), c.shown[i]) << c.pieces[i];
    EXPECT_EQ(m.flush(), c.rest);
    EXPECT_EQ(m.matched(), c.matched);
    EXPECT_EQ(m.found(), !c.matched.empty());
  }
}

RC_GTEST_PROP(StopMatcher, ResultDoesNotDependOnTheCut, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
  const std::string text = *letters;
  auto stops = *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty(letters));
  const bool include = *rc::gen::arbitrary<bool>();
  StopMatcher whole(stops, include);
  // Reference: the stop string whose occurrence ends first, the longest of those.
  size_t best_end = std::string::npos;
  std::string best;
  for (const auto& s : stops) {
    const size_t at = text.find(s);
    if (at == std::string::npos) continue;
    if (at + s.size() < best_end || (at + s.size() == best_end && s.size() > best.size())) {
      best_end = at + s.size();
      best = s;
    }
  }
  const std::string want =
      best.empty() ? text : text.substr(0, include ? best_end : best_end - best.size());
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    const size_t n = *rc::gen::inRange<size_t>(1, 4);
    shown += whole.push(text.substr(i, n));
    i += n;
  }
  shown += whole.flush();
  RC_ASSERT(shown == want);
  RC_ASSERT(whole.matched() == best);
}

}  // namespace
}  // namespace mx8
