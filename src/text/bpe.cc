// Words come out of the pre-tokeniser short (a few bytes) and repeat, or, in files without a
// pre-tokeniser, as one word as long as the text. So: a direct-mapped cache of short words; a
// linear scan over the pairs of a short word (fits one or two cache lines); a heap of pairs for
// long ones, which keeps a run of a million equal characters at O(n log n).
#include "text/bpe.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

#include "base/strings.h"
#include "text/byte_level.h"
#include "text/utf8.h"

namespace mx8::text {

namespace {

constexpr std::string_view kMetaspace = "\xE2\x96\x81";
constexpr size_t kShortWord = 48;  // symbols; beyond it the scan's n^2 overtakes the heap
constexpr uint64_t kNoRank = ~uint64_t{0};

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

uint64_t mix(uint64_t key) {
  key *= 0x9E3779B97F4A7C15ull;
  return key ^ key >> 32;
}

// The end of the first stretch of `text` that no merge can leave when no token holds U+2581 after
// another character: where U+2581 follows something else.
size_t metaspace_stretch(std::string_view text) {
  bool after_metaspace = true;
  for (size_t at = 0; at < text.size();) {
    const bool here = text.substr(at, kMetaspace.size()) == kMetaspace;
    if (here && !after_metaspace) return at;
    after_metaspace = here;
    at += here ? kMetaspace.size() : 1;
  }
  return text.size();
}

}  // namespace

Result<Bpe> Bpe::build(Vocab vocab, const std::vector<std::pair<int32_t, int32_t>>& merges,
                       BpeOptions options) {
  Bpe bpe;
  bpe.vocab_ = std::move(vocab);
  bpe.options_ = std::move(options);
  if (bpe.options_.unk_token) {
    bpe.unk_id_ = bpe.vocab_.find(*bpe.options_.unk_token);
    if (bpe.unk_id_ == kNoToken) {
      return corrupt(
          str_cat("unk_token \"", *bpe.options_.unk_token, "\" is not in the vocabulary"));
    }
  }
  size_t slots = 16;
  while (slots < merges.size() * 2) slots *= 2;
  bpe.pairs_.assign(slots, {kEmptyKey, {0, kNoToken}});
  bool crosses_metaspace = false;
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right] = merges[rank];
    joined = bpe.vocab_.text(left);
    joined += bpe.vocab_.text(right);
    const int32_t id = bpe.vocab_.find(joined);
    if (id == kNoToken) {
      return corrupt(str_cat("merge ", rank, " (\"", bpe.vocab_.text(left), "\" + \"",
                             bpe.vocab_.text(right), "\") makes \"", joined,
                             "\", which is not in the vocabulary"));
    }
    bpe.insert_merge(left, right, {static_cast<uint32_t>(rank), id});
    crosses_metaspace = crosses_metaspace || metaspace_stretch(joined) != joined.size();
  }
  bpe.index_bytes();
  // Nor may characters vanish: their neighbours would come together across a cut.
  bpe.split_at_metaspace_ = !bpe.options_.byte_level && !bpe.options_.ignore_merges &&
                            !crosses_metaspace && bpe.vocab_.find(kMetaspace) != kNoToken &&
                            !bpe.drops_unknown();
  return bpe;
}

bool Bpe::drops_unknown() const {
  const bool has_all_bytes =
      std::count(byte_fallback_ids_.begin(), byte_fallback_ids_.end(), kNoToken) == 0;
  return unk_id_ == kNoToken && !(options_.byte_fallback && has_all_bytes);
}

void Bpe::insert_merge(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = pair_key(left, right);
  size_t at = mix(key) & (pairs_.size() - 1);
  while (pairs_[at].key != kEmptyKey && pairs_[at].key != key) at = (at + 1) & (pairs_.size() - 1);
  pairs_[at] = {key, merge};  // of a pair listed twice the last rank counts
}

const Bpe::Merge* Bpe::find_merge(int32_t left, int32_t right) const {
  const uint64_t key = pair_key(left, right);
  for (size_t at = mix(key) & (pairs_.size() - 1);; at = (at + 1) & (pairs_.size() - 1)) {
    if (pairs_[at].key == key) return &pairs_[at].merge;
    if (pairs_[at].key == kEmptyKey) return nullptr;
  }
}

void Bpe::index_bytes() {
  for (int b = 0; b < 256; ++b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", b);
    byte_fallback_ids_[static_cast<size_t>(b)] = vocab_.find(name);
  }
  for (size_t i = 0; i < ascii_ids_.size(); ++i) {
    const char c = static_cast<char>(i);
    ascii_ids_[i] = vocab_.find(std::string_view(&c, 1));
  }
  if (!options_.byte_level) return;

  for (int b = 0; b < 256; ++b) {
    const std::string_view spelled = byte_level_char(static_cast<unsigned char>(b));
    std::vector<int32_t>& symbols = byte_symbols_[static_cast<size_t>(b)];
    const int32_t id = vocab_.find(spelled);
    if (id != kNoToken) {
      symbols = {id};
    } else if (options_.byte_fallback) {
      for (const char c : spelled) {
        symbols.push_back(byte_fallback_ids_[static_cast<unsigned char>(c)]);
      }
      if (std::count(symbols.begin(), symbols.end(), kNoToken) > 0) symbols.clear();
    }
  }
  if (!options_.ignore_merges) return;
  for (int32_t id = 0; id < vocab_.end_id(); ++id) {
    if (!vocab_.has(id)) continue;
    if (const auto raw = byte_level_decode(vocab_.text(id))) raw_words_.insert(*raw, id);
  }
}

void Bpe::set_special(const std::vector<int32_t>& special) {
  reachable_special_.clear();
  special_parts_.clear();
  std::vector<bool> is_special(static_cast<size_t>(vocab_.end_id()), false);
  for (const int32_t id : special) {
    if (vocab_.has(id)) is_special[static_cast<size_t>(id)] = true;
  }
  const auto mark = [this](int32_t id) {
    reachable_special_.resize(static_cast<size_t>(vocab_.end_id()), false);
    reachable_special_[static_cast<size_t>(id)] = true;
  };
  for (const PairSlot& slot : pairs_) {
    if (slot.key == kEmptyKey || !is_special[static_cast<size_t>(slot.merge.id)]) continue;
    mark(slot.merge.id);
    special_parts_.push_back(
        {slot.merge.id,
         {static_cast<int32_t>(slot.key >> 32), static_cast<int32_t>(slot.key & 0xFFFFFFFFu)}});
  }
  for (const int32_t id : special) {
    if (!vocab_.has(id) || id == unk_id_) continue;
    const std::string_view text = vocab_.text(id);
    const bool one_character = !text.empty() && decode_valid(text.data()).size == text.size();
    if (options_.ignore_merges || one_character) mark(id);
  }
  if (unk_id_ != kNoToken && !reachable_special_.empty()) {
    // An unknown character is what the unknown token is for, whoever wrote it.
    reachable_special_[static_cast<size_t>(unk_id_)] = false;
  }
}

void Bpe::encode(std::string_view word, bool allow_special, BpeScratch& scratch,
                 std::vector<int32_t>& out) const {
  while (!word.empty()) {
    const size_t size = split_at_metaspace_ ? metaspace_stretch(word) : word.size();
    const std::string_view part = word.substr(0, size);
    word.remove_prefix(size);
    const size_t before = out.size();
    encode_one(part, scratch, out);
    if (allow_special || reachable_special_.empty()) continue;
    const bool found =
        std::any_of(out.begin() + static_cast<ptrdiff_t>(before), out.end(),
                    [this](int32_t id) { return reachable_special_[static_cast<size_t>(id)]; });
    if (found) {
      out.resize(before);
      encode_without_special(part, scratch, out);
    }
  }
}

void Bpe::encode_one(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const {
  using CachedWord = BpeScratch::CachedWord;
  if (word.size() > CachedWord::kMaxBytes) return encode_uncached(word, true, scratch, out);
  const uint64_t hash = hash_bytes(word);
  CachedWord& slot = scratch.cache[hash & (BpeScratch::kCacheSlots - 1)];
  if (slot.hash == hash && slot.length == word.size() &&
      std::memcmp(slot.bytes.data(), word.data(), word.size()) == 0) {
    out.insert(out.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
    return;
  }
  const size_t before = out.size();
  encode_uncached(word, true, scratch, out);
  const size_t count = out.size() - before;
  if (count > CachedWord::kMaxIds) return;
  slot.hash = hash;
  slot.length = static_cast<uint8_t>(word.size());
  slot.count = static_cast<uint8_t>(count);
  std::memcpy(slot.bytes.data(), word.data(), word.size());
  std::copy(out.begin() + static_cast<ptrdiff_t>(before), out.end(), slot.ids.begin());
}

void Bpe::encode_uncached(std::string_view word, bool may_ignore_merges, BpeScratch& scratch,
                          std::vector<int32_t>& out) const {
  if (options_.ignore_merges && may_ignore_merges) {
    const int32_t id = options_.byte_level ? raw_words_.find(word) : vocab_.find(word);
    if (id != kNoToken) {
      out.push_back(id);
      return;
    }
  }
  scratch.ids.clear();
  initial_symbols(word, scratch.ids);
  if (scratch.ids.size() <= kShortWord) {
    merge_short(scratch, out);
  } else {
    merge_long(scratch, out);
  }
}

void Bpe::encode_without_special(std::string_view word, BpeScratch& scratch,
                                 std::vector<int32_t>& out) const {
  std::vector<int32_t> ids;
  encode_uncached(word, false, scratch, ids);
  for (const int32_t id : ids) split_special(id, out);
}

void Bpe::split_special(int32_t id, std::vector<int32_t>& out) const {
  if (!reachable_special_[static_cast<size_t>(id)]) {
    out.push_back(id);
    return;
  }
  for (const auto& [whole, parts] : special_parts_) {
    if (whole != id) continue;
    split_special(parts.first, out);  // parts are shorter than the whole: this ends
    split_special(parts.second, out);
    return;
  }
  // One character that is a special token by itself.
  const std::string_view text = vocab_.text(id);
  if (options_.byte_fallback) {
    for (const char c : text) {
      const int32_t byte = byte_fallback_ids_[static_cast<unsigned char>(c)];
      if (byte != kNoToken) out.push_back(byte);
    }
  } else if (unk_id_ != kNoToken) {
    out.push_back(unk_id_);
  }
}

void Bpe::initial_symbols(std::string_view word, std::vector<int32_t>& ids) const {
  bool pending_unk = false;  // an unknown token not written yet, so that more can fuse with it
  const auto unknown = [&] {
    if (unk_id_ == kNoToken) return;  // dropped
    if (pending_unk && !options_.fuse_unk) ids.push_back(unk_id_);
    pending_unk = true;
  };
  const auto known = [&](int32_t id) {
    if (pending_unk) ids.push_back(unk_id_);
    pending_unk = false;
    ids.push_back(id);
  };
  if (options_.byte_level) {
    for (const char c : word) {
      const std::vector<int32_t>& symbols = byte_symbols_[static_cast<unsigned char>(c)];
      if (symbols.size() == 1) {
        known(symbols[0]);
      } else if (symbols.empty()) {
        unknown();
      } else {
        ids.insert(ids.end(), symbols.begin(), symbols.end());
      }
    }
  } else {
    for (size_t at = 0; at < word.size();) {
      const uint32_t size = decode_valid(word.data() + at).size;
      const std::string_view character = word.substr(at, size);
      at += size;
      const int32_t id =
          size == 1 ? ascii_ids_[static_cast<unsigned char>(character[0])] : vocab_.find(character);
      if (id != kNoToken) {
        known(id);
        continue;
      }
      const bool has_bytes =
          options_.byte_fallback && std::all_of(character.begin(), character.end(), [this](char c) {
            return byte_fallback_ids_[static_cast<unsigned char>(c)] != kNoToken;
          });
      if (has_bytes) {
        // As in the Python package, bytes overtake a pending unknown token.
        for (const char c : character) {
          ids.push_back(byte_fallback_ids_[static_cast<unsigned char>(c)]);
        }
      } else {
        unknown();
      }
    }
  }
  if (pending_unk) ids.push_back(unk_id_);
}

void Bpe::merge_short(BpeScratch& scratch, std::vector<int32_t>& out) const {
  std::vector<int32_t>& ids = scratch.ids;
  std::vector<uint64_t>& ranks = scratch.ranks;  // rank << 32 | id of the pair at i and i + 1
  const auto rank_of = [&](size_t i) {
    const Merge* m = find_merge(ids[i], ids[i + 1]);
    return m == nullptr ? kNoRank
                        : static_cast<uint64_t>(m->rank) << 32 | static_cast<uint32_t>(m->id);
  };
  size_t n = ids.size();
  ranks.resize(n);
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = rank_of(i);
  while (n > 1) {
    const auto end = ranks.begin() + static_cast<ptrdiff_t>(n - 1);
    const auto best = std::min_element(ranks.begin(), end);  // the leftmost of equals
    if (*best == kNoRank) break;
    const auto i = static_cast<size_t>(best - ranks.begin());
    ids[i] = static_cast<int32_t>(*best & 0xFFFFFFFFu);
    std::copy(ids.begin() + static_cast<ptrdiff_t>(i + 2), ids.begin() + static_cast<ptrdiff_t>(n),
              ids.begin() + static_cast<ptrdiff_t>(i + 1));
    std::copy(best + 1, end, best);
    --n;
    if (i + 1 < n) ranks[i] = rank_of(i);
    if (i > 0) ranks[i - 1] = rank_of(i - 1);
  }
  out.insert(out.end(), ids.begin(), ids.begin() + static_cast<ptrdiff_t>(n));
}

void Bpe::merge_long(BpeScratch& scratch, std::vector<int32_t>& out) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;  // rank << 32 | position of the left symbol; smallest first
  const auto n = static_cast<int32_t>(scratch.ids.size());
  symbols.resize(scratch.ids.size());
  heap.clear();
  for (int32_t i = 0; i < n; ++i) {
    symbols[static_cast<size_t>(i)] = {scratch.ids[static_cast<size_t>(i)], i - 1,
                                       i + 1 < n ? i + 1 : -1};
  }
  const auto at = [&](int32_t i) -> BpeScratch::Symbol& { return symbols[static_cast<size_t>(i)]; };
  const auto candidate = [&](int32_t i) {
    const Merge* m = find_merge(at(i).id, at(at(i).next).id);
    return m == nullptr ? kNoRank : static_cast<uint64_t>(m->rank) << 32 | static_cast<uint32_t>(i);
  };
  const auto push = [&](int32_t i) {
    const uint64_t entry = candidate(i);
    if (entry == kNoRank) return;
    heap.push_back(entry);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  for (int32_t i = 0; i + 1 < n; ++i) {
    const uint64_t entry = candidate(i);
    if (entry != kNoRank) heap.push_back(entry);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    const uint64_t entry = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const auto i = static_cast<int32_t>(entry & 0xFFFFFFFFu);
    BpeScratch::Symbol& left = at(i);
    if (left.id == kNoToken || left.next < 0) continue;
    BpeScratch::Symbol& right = at(left.next);
    const Merge* merge = find_merge(left.id, right.id);
    if (merge == nullptr || merge->rank != entry >> 32) continue;  // the pair has changed since
    left.id = merge->id;
    left.next = right.next;
    right.id = kNoToken;
    if (left.next >= 0) at(left.next).previous = i;
    if (left.previous >= 0) push(left.previous);
    if (left.next >= 0) push(i);
  }
  for (int32_t i = 0; i >= 0; i = at(i).next) out.push_back(at(i).id);
}

}  // namespace mx8::text
