// A stage gets each token as one or more chunks, the last one marked, and hands chunks on to the
// next stage. Fuse and ByteLevel turn all tokens into a single one, whose end is the end of the
// text.
#include "text/decoder.h"

#include "base/check.h"
#include "text/byte_level.h"
#include "text/utf8.h"

namespace mx8::text {

class StreamDecoder::Stage {
 public:
  virtual ~Stage() = default;
  virtual void chunk(std::string_view text, bool token_ends) = 0;
  // The end of all tokens: hands on what was held back, then ends the next stage.
  virtual void end() { next_->end(); }

  void set_next(Stage* next) { next_ = next; }

 protected:
  Stage* next_ = nullptr;
};

namespace {

using Stage = StreamDecoder::Stage;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

class Output : public Stage {
 public:
  void chunk(std::string_view text, bool) override { text_ += text; }
  void end() override {}
  void take(std::string& out) {
    out += text_;
    text_.clear();
  }

 private:
  std::string text_;
};

class ReplaceStage : public Stage {
 public:
  explicit ReplaceStage(const DecoderNode& node) : node_(node) {}
  void chunk(std::string_view token, bool token_ends) override {
    matches_.clear();
    if (node_.kind == DecoderNode::kReplaceRegex) {
      node_.regex.find_all(token, matches_);
    } else {
      for (size_t at = token.find(node_.pattern); at != std::string_view::npos;
           at = token.find(node_.pattern, at + node_.pattern.size())) {
        matches_.push_back({at, at + node_.pattern.size()});
      }
    }
    text_.clear();
    size_t at = 0;
    for (const Match& m : matches_) {
      text_ += token.substr(at, m.begin - at);
      text_ += node_.content;
      at = m.end;
    }
    text_ += token.substr(at);
    next_->chunk(text_, token_ends);
  }

 private:
  const DecoderNode& node_;
  std::vector<Match> matches_;
  std::string text_;
};

// The value of "<0x4A>", or -1.
int fallback_byte(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int lower = c | 0x20;
    if (c >= '0' && c <= '9') {
      value = value * 16 + (c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + (lower - 'a' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

// A run of byte tokens is text if the whole run is valid UTF-8; if not, each byte of it is U+FFFD.
// So nothing of a run is certain before its end, unless it is already broken.
class ByteFallbackStage : public Stage {
 public:
  void chunk(std::string_view token, bool token_ends) override {
    const int byte = fallback_byte(token);
    if (byte < 0) {
      resolve();
      next_->chunk(token, token_ends);
      return;
    }
    if (broken_) {
      next_->chunk(kReplacement, true);
      return;
    }
    run_.push_back(static_cast<char>(byte));
    tail_.push_back(static_cast<char>(byte));
    std::string text;
    const size_t used = append_lossy(text, tail_, true);
    if (text != std::string_view(tail_).substr(0, used)) {
      broken_ = true;
      for (size_t i = 0; i < run_.size(); ++i) next_->chunk(kReplacement, true);
      run_.clear();
      tail_.clear();
    } else {
      tail_.erase(0, used);
    }
  }
  void end() override {
    resolve();
    next_->end();
  }

 private:
  void resolve() {
    if (!run_.empty() && tail_.empty()) {
      next_->chunk(run_, true);
    } else {
      for (size_t i = 0; i < run_.size(); ++i) next_->chunk(kReplacement, true);
    }
    run_.clear();
    tail_.clear();
    broken_ = false;
  }

  std::string run_;   // the bytes since the last other token
  std::string tail_;  // the end of run_ that is no whole character yet
  bool broken_ = false;
};

class FuseStage : public Stage {
 public:
  void chunk(std::string_view text, bool) override { next_->chunk(text, false); }
  void end() override {
    next_->chunk({}, true);
    next_->end();
  }
};

class ByteLevelStage : public Stage {
 public:
  void chunk(std::string_view token, bool) override {
    // A token with a character outside the alphabet (an added token) stands for its own text.
    if (const auto bytes = byte_level_decode(token)) {
      pending_ += *bytes;
    } else {
      pending_ += token;
    }
    emit(true);
  }
  void end() override {
    emit(false);
    next_->chunk({}, true);
    next_->end();
  }

 private:
  void emit(bool more_may_follow) {
    std::string text;
    const size_t used = append_lossy(text, pending_, more_may_follow);
    pending_.erase(0, used);
    next_->chunk(text, false);
  }
  std::string pending_;  // a character cut short
};

class MetaspaceStage : public Stage {
 public:
  explicit MetaspaceStage(const DecoderNode& node) : node_(node) {}
  void chunk(std::string_view token, bool token_ends) override {
    text_.clear();
    for (size_t at = 0; at < token.size();) {
      if (token.substr(at, node_.pattern.size()) == node_.pattern) {
        if (!(is_first_ && node_.strips_first)) text_ += ' ';
        at += node_.pattern.size();
      } else {
        text_ += token[at++];
      }
    }
    is_first_ = false;
    next_->chunk(text_, token_ends);
  }

 private:
  const DecoderNode& node_;
  std::string text_;
  bool is_first_ = true;
};

// Removes up to `start` of the character from the front of each token and up to `stop` from its
// end.
class StripStage : public Stage {
 public:
  explicit StripStage(const DecoderNode& node) : node_(node) {}
  void chunk(std::string_view text, bool token_ends) override {
    const std::string& unit = node_.pattern;
    while (at_front_ && !text.empty()) {
      if (cut_ == node_.start || text.substr(0, unit.size()) != unit) {
        at_front_ = false;
      } else {
        ++cut_;
        text.remove_prefix(unit.size());
      }
    }
    held_ += text;
    size_t keep = held_.size();
    for (size_t n = 0; n < node_.stop && ends_with(keep, unit); ++n) keep -= unit.size();
    next_->chunk(std::string_view(held_).substr(0, keep), token_ends);
    if (token_ends) {
      held_.clear();
      at_front_ = true;
      cut_ = 0;
    } else {
      held_.erase(0, keep);
    }
  }

 private:
  bool ends_with(size_t size, const std::string& unit) const {
    return size >= unit.size() && held_.compare(size - unit.size(), unit.size(), unit) == 0;
  }
  const DecoderNode& node_;
  std::string held_;  // may turn out to be the token's end
  bool at_front_ = true;
  size_t cut_ = 0;
};

class JoinWithSpaceStage : public Stage {
 public:
  void chunk(std::string_view token, bool token_ends) override {
    if (!is_first_) next_->chunk(" ", true);
    is_first_ = false;
    next_->chunk(token, token_ends);
  }

 private:
  bool is_first_ = true;
};

std::unique_ptr<Stage> make_stage(const DecoderNode& node) {
  switch (node.kind) {
    case DecoderNode::kByteLevel:
      return std::make_unique<ByteLevelStage>();
    case DecoderNode::kByteFallback:
      return std::make_unique<ByteFallbackStage>();
    case DecoderNode::kFuse:
      return std::make_unique<FuseStage>();
    case DecoderNode::kReplaceString:
    case DecoderNode::kReplaceRegex:
      return std::make_unique<ReplaceStage>(node);
    case DecoderNode::kMetaspace:
      return std::make_unique<MetaspaceStage>(node);
    case DecoderNode::kStrip:
      return std::make_unique<StripStage>(node);
    case DecoderNode::kJoinWithSpace:
      return std::make_unique<JoinWithSpaceStage>();
  }
  MX8_CHECK(false, static_cast<int>(node.kind));
  return nullptr;
}

}  // namespace

bool works_on_fused_text(DecoderNode::Kind kind) {
  return kind == DecoderNode::kStrip || kind == DecoderNode::kFuse;
}

StreamDecoder::StreamDecoder(const std::vector<DecoderNode>& nodes) : nodes_(nodes) { reset(); }

StreamDecoder::~StreamDecoder() = default;

void StreamDecoder::reset() {
  stages_.clear();
  for (const DecoderNode& node : nodes_) stages_.push_back(make_stage(node));
  stages_.push_back(std::make_unique<Output>());
  for (size_t i = 0; i + 1 < stages_.size(); ++i) stages_[i]->set_next(stages_[i + 1].get());
}

void StreamDecoder::push(std::string_view token, std::string& out) {
  stages_.front()->chunk(token, true);
  static_cast<Output&>(*stages_.back()).take(out);
}

void StreamDecoder::flush(std::string& out) {
  stages_.front()->end();
  static_cast<Output&>(*stages_.back()).take(out);
  reset();
}

}  // namespace mx8::text
