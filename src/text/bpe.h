// The BPE model: merges adjacent symbols of a word by rank until no ranked pair is left.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocab.h"

namespace mx8::text {

struct BpeOptions {
  std::optional<std::string> unk_token;
  bool fuse_unk = false;
  bool byte_fallback = false;  // a character that the vocabulary lacks becomes <0xNN> tokens
  bool ignore_merges = false;  // a word that is a token is that token
  // Words come as raw bytes, one symbol a byte, spelled in the byte-level alphabet.
  bool byte_level = false;
};

// Buffers and the cache of recent words; one for each thread that encodes at a time.
class BpeScratch {
 public:
  BpeScratch() : cache(kCacheSlots) {}

 private:
  friend class Bpe;
  static constexpr size_t kCacheSlots = size_t{1} << 14;  // 1 MiB

  struct CachedWord {
    static constexpr size_t kMaxBytes = 22;
    static constexpr size_t kMaxIds = 8;
    uint64_t hash = 0;
    std::array<int32_t, kMaxIds> ids;
    std::array<char, kMaxBytes> bytes;
    uint8_t length = 0;
    uint8_t count = 0;
  };
  struct Symbol {
    int32_t id;
    int32_t previous, next;  // -1 at the ends; id is kNoToken once merged away
  };

  std::vector<CachedWord> cache;
  std::vector<int32_t> ids;
  std::vector<uint64_t> ranks;
  std::vector<Symbol> symbols;
  std::vector<uint64_t> heap;
};

class Bpe {
 public:
  // Merges as pairs of ids, best first. Errors name the missing token.
  static Result<Bpe> build(Vocab vocab, const std::vector<std::pair<int32_t, int32_t>>& merges,
                           BpeOptions options);

  // `special`: ids that encode(allow_special = false) must never give, however a word is spelled.
  void set_special(const std::vector<int32_t>& special);

  // Appends the word's ids. Takes time O(n log n) for n bytes.
  void encode(std::string_view word, bool allow_special, BpeScratch& scratch,
              std::vector<int32_t>& out) const;

  const Vocab& vocab() const { return vocab_; }
  const BpeOptions& options() const { return options_; }

 private:
  struct Merge {
    uint32_t rank;
    int32_t id;
  };
  struct PairSlot {
    uint64_t key;
    Merge merge;
  };
  static constexpr uint64_t kEmptyKey = ~uint64_t{0};

  Bpe() = default;
  void insert_merge(int32_t left, int32_t right, Merge merge);
  const Merge* find_merge(int32_t left, int32_t right) const;
  void index_bytes();
  bool drops_unknown() const;
  void encode_one(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const;
  void encode_uncached(std::string_view word, bool may_ignore_merges, BpeScratch& scratch,
                       std::vector<int32_t>& out) const;
  void encode_without_special(std::string_view word, BpeScratch& scratch,
                              std::vector<int32_t>& out) const;
  void split_special(int32_t id, std::vector<int32_t>& out) const;
  void initial_symbols(std::string_view word, std::vector<int32_t>& ids) const;
  void merge_short(BpeScratch& scratch, std::vector<int32_t>& out) const;
  void merge_long(BpeScratch& scratch, std::vector<int32_t>& out) const;

  Vocab vocab_;
  BpeOptions options_;
  std::vector<PairSlot> pairs_;
  std::array<int32_t, 256> byte_fallback_ids_{};
  std::array<std::vector<int32_t>, 256> byte_symbols_;  // byte_level; empty: unknown
  std::array<int32_t, 128> ascii_ids_{};
  StringMap raw_words_;  // byte_level and ignore_merges: tokens as raw bytes
  int32_t unk_id_ = kNoToken;
  bool split_at_metaspace_ = false;
  std::vector<bool> reachable_special_;  // by id; empty when no word can spell one
  std::vector<std::pair<int32_t, std::pair<int32_t, int32_t>>> special_parts_;
};

}  // namespace mx8::text
