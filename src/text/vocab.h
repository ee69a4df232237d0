// The token table: text to id and id to text, in one block of memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mx8::text {

constexpr int32_t kNoToken = -1;

// A hash map from strings to ids. The strings are copied into one buffer.
class StringMap {
 public:
  void reserve(size_t entries, size_t bytes);
  // False when the key is there already (its value is kept).
  bool insert(std::string_view key, int32_t value);
  int32_t find(std::string_view key) const;  // kNoToken when absent
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t hash;
    size_t offset;
    uint32_t length;
    int32_t value;
  };
  std::string_view key(const Entry& e) const { return {bytes_.data() + e.offset, e.length}; }
  void grow(size_t slots);

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // entry + 1, or 0
};

uint64_t hash_bytes(std::string_view bytes);

// Ids are dense enough to index a vector; ids that no token has are holes.
class Vocab {
 public:
  static constexpr int64_t kMaxId = (int64_t{1} << 24) - 1;

  // What went wrong, or an empty string. Both the text and the id must be new.
  std::string add(std::string_view token, int64_t id);

  int32_t find(std::string_view token) const { return map_.find(token); }
  bool has(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < present_.size() &&
           present_[static_cast<size_t>(id)];
  }
  // The text of an id for which has() holds.
  std::string_view text(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  int32_t end_id() const { return static_cast<int32_t>(tokens_.size()); }
  size_t size() const { return map_.size(); }

 private:
  StringMap map_;
  std::vector<std::string> tokens_;
  std::vector<bool> present_;
};

}  // namespace mx8::text
