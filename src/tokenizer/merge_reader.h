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

// Every merge reads big tables at four random places. A few merges are therefore read together:
// first all their places are prefetched, then they are read.
class MergeReader {
 public:
  // The right token of a merge loses `prefix_size` bytes. `place` names the file in errors.
  MergeReader(const Vocabulary& vocabulary, size_t num_merges, size_t prefix_size, FilePlace place);

  // The next merge, which stands in this line; the views must stay valid until finish(). Throws
  // Error corrupt, possibly for one of those before.
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

  const Vocabulary& vocabulary_;
  const size_t prefix_size_;
  const FilePlace place_;
  MergeTable merges_;
  MergeBorders borders_;
  bool texts_merge_;  // and not bytes, whose tokens don't stand for their own texts
  uint32_t rank_ = 0;
  std::array<Pending, kBatch> pending_;
  size_t num_pending_ = 0;
};

}  // namespace paceline
