// StopMatcher: finds stop strings in text that arrives in pieces, and holds back what may become
// one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mx8 {

class StopMatcher {
 public:
  // `include` keeps the stop string in the text that comes out.
  StopMatcher(std::vector<std::string> stops, bool include);

  // Adds a piece; returns the text that can be shown now. Once a stop string was found, the rest of
  // the text is dropped and matched() names it. Of several stop strings the one that is complete
  // first wins, then the longer: so the result does not depend on how the text was cut.
  std::string push(std::string_view piece);
  // The held-back text, when no more will come.
  std::string flush();

  bool found() const { return !matched_.empty(); }
  const std::string& matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  bool include_;
  std::string held_;
  std::string matched_;
};

}  // namespace mx8
