#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace mx8::text {

namespace {

bool touches_word(std::string_view text, size_t begin, size_t end) {
  if (begin > 0) {
    size_t start = begin - 1;
    while (start > 0 && is_continuation(text[start])) --start;
    if (is_word(decode_valid(text.data() + start).value)) return true;
  }
  return end < text.size() && is_word(decode_valid(text.data() + end).value);
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens,
                                     const std::vector<std::string>& contents)
    : tokens_(std::move(tokens)), nodes_(1), first_bytes_(256, 0) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (contents[i].empty()) continue;
    first_bytes_[static_cast<unsigned char>(contents[i][0])] = 1;
    uint32_t node = 0;
    for (const char c : contents[i]) {
      const auto byte = static_cast<unsigned char>(c);
      const auto& children = nodes_[node].children;
      const auto child = std::find_if(children.begin(), children.end(),
                                      [byte](const auto& entry) { return entry.first == byte; });
      if (child != children.end()) {
        node = child->second;
        continue;
      }
      const auto next = static_cast<uint32_t>(nodes_.size());
      nodes_[node].children.push_back({byte, next});
      nodes_.emplace_back();
      node = next;
    }
    if (nodes_[node].token < 0) nodes_[node].token = static_cast<int32_t>(i);
  }
}

AddedTokenMatcher::Found AddedTokenMatcher::match_at(const TracedText& text, size_t at) const {
  Found found;
  uint32_t node = 0;
  for (size_t end = at; end < text.bytes.size();) {
    const auto byte = static_cast<unsigned char>(text.bytes[end]);
    const auto& children = nodes_[node].children;
    const auto child = std::find_if(children.begin(), children.end(),
                                    [byte](const auto& entry) { return entry.first == byte; });
    if (child == children.end()) break;
    node = child->second;
    ++end;
    if (nodes_[node].token < 0) continue;
    const AddedToken& token = tokens_[static_cast<size_t>(nodes_[node].token)];
    if (!token.special || text.trusted(at, end)) {
      found.part = Part{&token, at, end};
      found.plain_until = 0;
    } else if (text.untrusted(at, end)) {
      found.plain_until = end;
    }
  }
  return found;
}

void AddedTokenMatcher::find(const TracedText& text, std::vector<Part>& parts) const {
  parts.clear();
  const std::string_view bytes = text.bytes;
  size_t done = 0;
  for (size_t at = 0; at < bytes.size() && !tokens_.empty();) {
    if (first_bytes_[static_cast<unsigned char>(bytes[at])] == 0) {
      ++at;
      continue;
    }
    const auto [match, plain_until] = match_at(text, at);
    if (!match || plain_until > 0) {
      at = std::max(at + 1, plain_until);
      continue;
    }
    size_t begin = match->begin, end = match->end;
    at = end;
    if (match->token->single_word && touches_word(bytes, begin, end)) continue;
    if (match->token->lstrip) {
      begin -= trailing_white_space(bytes.substr(0, begin));
      begin = std::max(begin, done);
    }
    if (match->token->rstrip) end += leading_white_space(bytes.substr(end));
    if (done < begin) parts.push_back({nullptr, done, begin});
    parts.push_back({match->token, begin, end});
    done = std::max(done, end);
  }
  if (done < bytes.size()) parts.push_back({nullptr, done, bytes.size()});
}

}  // namespace mx8::text
