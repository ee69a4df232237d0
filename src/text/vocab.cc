#include "text/vocab.h"

#include <cstring>

#include "base/strings.h"

namespace mx8::text {

uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;
  uint64_t h = bytes.size() * kMultiplier;
  const char* p = bytes.data();
  size_t left = bytes.size();
  const auto mix = [&h](uint64_t word) {
    h = (h ^ word) * kMultiplier;
    h ^= h >> 29;
  };
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    mix(word);
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, p, left);
    mix(word);
  }
  h *= kMultiplier;
  return h ^ h >> 32;
}

void StringMap::reserve(size_t entries, size_t bytes) {
  entries_.reserve(entries);
  bytes_.reserve(bytes);
  size_t slots = 16;
  while (slots < entries * 2) slots *= 2;
  if (slots > slots_.size()) grow(slots);
}

void StringMap::grow(size_t slots) {
  slots_.assign(slots, 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t at = entries_[i].hash & (slots - 1);
    while (slots_[at] != 0) at = (at + 1) & (slots - 1);
    slots_[at] = static_cast<uint32_t>(i + 1);
  }
}

bool StringMap::insert(std::string_view k, int32_t value) {
  if ((entries_.size() + 1) * 2 > slots_.size()) grow(slots_.empty() ? 16 : slots_.size() * 2);
  const uint64_t hash = hash_bytes(k);
  size_t at = hash & (slots_.size() - 1);
  for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
    const Entry& e = entries_[slots_[at] - 1];
    if (e.hash == hash && key(e) == k) return false;
  }
  entries_.push_back({hash, bytes_.size(), static_cast<uint32_t>(k.size()), value});
  bytes_ += k;
  slots_[at] = static_cast<uint32_t>(entries_.size());
  return true;
}

int32_t StringMap::find(std::string_view k) const {
  if (slots_.empty()) return kNoToken;
  const uint64_t hash = hash_bytes(k);
  for (size_t at = hash & (slots_.size() - 1); slots_[at] != 0;
       at = (at + 1) & (slots_.size() - 1)) {
    const Entry& e = entries_[slots_[at] - 1];
    if (e.hash == hash && key(e) == k) return e.value;
  }
  return kNoToken;
}

std::string Vocab::add(std::string_view token, int64_t id) {
  if (id < 0 || id > kMaxId) {
    return str_cat("token \"", token, "\" has id ", id, ", outside [0, ", kMaxId, "]");
  }
  const auto narrow = static_cast<int32_t>(id);
  if (has(narrow)) {
    return str_cat("id ", id, " is given to both \"", text(narrow), "\" and \"", token, "\"");
  }
  if (!map_.insert(token, narrow)) {
    return str_cat("token \"", token, "\" has two ids, ", map_.find(token), " and ", id);
  }
  const auto index = static_cast<size_t>(id);
  if (index >= tokens_.size()) {
    tokens_.resize(index + 1);
    present_.resize(index + 1, false);
  }
  tokens_[index] = token;
  present_[index] = true;
  return {};
}

}  // namespace mx8::text
