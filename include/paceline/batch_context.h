// BatchContext: continuous batching by the caller, who appends tokens to sequences and reads
// logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "paceline/options.h"

namespace paceline {

// A model, and a cache of `num_tokens` that its sequences share, in whole blocks. A row of logits
// has the bits that it has in any other chunks, batches or order, and in an LLM of the same
// options. One thread at a time. Every call may throw Error; one that throws has changed nothing,
// except that a sequence whose numbers aren't finite (Error numerical) can only be freed.
class BatchContext {
 public:
  using SequenceId = int32_t;

  // Throws what LLM::load throws, and Error exhausted when the memory for keys and values
  // (LoadOptions::kv_cache_memory_bytes) holds fewer tokens. Options of requests, of the queue and
  // of speculation have no effect.
  static BatchContext load(const LoadOptions& options, int64_t num_tokens);

  BatchContext(BatchContext&&) noexcept;
  BatchContext& operator=(BatchContext&&) noexcept;
  ~BatchContext();

  int64_t vocab_size() const;
  // The longest that a sequence may get.
  int64_t max_length() const;
  // Tokens that the cache still has room for, in whole blocks.
  int64_t room() const;

  // A new sequence. One whose rope is stretched beyond a length has the bits of `longest` tokens,
  // 0: of max_length(). `lora` names an adapter of LoadOptions::loras; empty: none. Throws Error
  // exhausted beyond LoadOptions::max_num_seqs sequences.
  SequenceId create(int64_t longest = 0, const std::string& lora = {});
  // Another sequence with the same tokens; both share their memory until they grow.
  SequenceId fork(SequenceId sequence);
  void free(SequenceId sequence);
  // In tokens.
  int64_t length(SequenceId sequence) const;

  // Appends tokens, in steps of at most `chunk` (0: as many as fit). `rows` are indices of `ids`,
  // ascending, whose logits go into `logits` [rows, vocab_size].
  void prefill(SequenceId sequence, std::span<const int32_t> ids, int64_t chunk,
               std::span<const size_t> rows, std::span<float> logits);

  struct Entry {
    SequenceId sequence = 0;
    int32_t token = 0;
  };
  // Appends a token to each of these different sequences in one step. `logits` [entries,
  // vocab_size], or empty.
  void decode_batch(std::span<const Entry> entries, std::span<float> logits);

 private:
  struct State;
  explicit BatchContext(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace paceline
