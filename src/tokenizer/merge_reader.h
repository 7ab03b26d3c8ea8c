// MergeReader turns the merges of a file, which are pairs of texts, into a table of ids.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/bpe_model.h"

namespace paceline {

struct TokenPair {
  std::string_view left;
  std::string_view right;
};

// Every merge reads big tables at four random places, so a few merges are read together: all their
// places are prefetched first.
class MergeReader {
 public:
  // The right token of a merge loses `prefix_size` bytes. Errors are about an item of `merges`;
  // both must outlive it.
  MergeReader(const Vocabulary& vocabulary, const DocumentCursor& merges, size_t prefix_size);

  // Adds the merge of this line; the views must stay valid until finish(). Throws Error corrupt,
  // possibly for an earlier merge.
  void add(TokenPair pair, size_t line);
  // Sets the model's merges and borders.
  void finish(BpeModel& model);

 private:
  struct Pending {
    TokenPair pair;
    size_t line = 0;
    std::string joined;
    uint64_t left_hash = 0;
    uint64_t right_hash = 0;
    uint64_t joined_hash = 0;
    TokenId left = -1;
    TokenId right = -1;
    TokenId token = -1;
  };
  static constexpr size_t kBatch = 32;

  void look_up(Pending& merge) const;
  void flush();
  [[noreturn]] void fail(size_t line, std::string_view what) const;

  const Vocabulary& vocabulary_;
  const size_t prefix_size_;
  const DocumentCursor& lines_;
  MergeTable merges_;
  MergeBorders borders_;
  bool texts_merge_;  // and not bytes, whose tokens don't stand for their own texts
  uint32_t rank_ = 0;
  std::array<Pending, kBatch> pending_;
  size_t num_pending_ = 0;
};

}  // namespace paceline
