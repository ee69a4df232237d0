// A piece of a prompt together with where it came from.
#pragma once

#include <string>

namespace mx8 {

// The chat-template renderer marks what the template's author wrote as trusted and what came from
// the caller (message contents, tool arguments) as not: only trusted text may name special tokens.
struct TextSpan {
  std::string text;      // UTF-8
  bool trusted = false;  // true: special-token text becomes special tokens
};

}  // namespace mx8
