// Cuts a template into tokens, with the white space control of jinja2 under trim_blocks and
// lstrip_blocks, as Hugging Face's renderer sets it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mx8::jinja {

enum class TokenKind : uint8_t {
  kData,             // text between tags
  kExpressionBegin,  // {{
  kExpressionEnd,    // }}
  kTagBegin,         // {%
  kTagEnd,           // %}
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 0;
  std::string text;  // data, name, operator, or the value of a string
  int64_t integer = 0;
  double real = 0;
};

// The last token is kEnd. Throws Failure with the line.
std::vector<Token> tokenize(std::string_view source);

}  // namespace mx8::jinja
