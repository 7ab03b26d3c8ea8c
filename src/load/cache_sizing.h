// Computes the number of cache blocks of a model, and the context that they hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/decoder_config.h"
#include "state/state_cache.h"

namespace paceline {

struct CacheRequest {
  int64_t block_size = 16;
  int64_t max_batched_tokens = 512;
  int64_t max_num_seqs = 256;
  std::optional<int64_t> max_model_len;
  std::optional<size_t> memory_bytes;  // default: as much as is useful
  double useful_share = 0.25;          // of free memory, at most, without memory_bytes
  DType dtype = DType::bf16;
  DType state_dtype = DType::f32;
};

struct CacheSize {
  std::vector<CacheGroup> groups;
  int64_t max_model_len = 0;
  size_t bytes = 0;
};

// The fewest blocks of a full-attention group by default.
constexpr int64_t kMinCacheBlocks = 512;

// Full groups share the budget; windowed groups get blocks for max_num_seqs sequences of the window
// and one chunk, and never more than the full ones. Groups of states get, with
// open rows for half as many sequences, or max_num_seqs, as many bytes as all others together, at
// least one block, and at most two blocks a sequence and one for 512 tokens; up to two a sequence,
// if others leave bytes of the budget, and fewer, if an explicit budget must hold an explicit
// max_model_len. No
// other group gets more blocks than max_num_seqs sequences of the whole context could fill. Without
// max_model_len the context is the model's, or as much as the budget holds. Throws Error exhausted
// when an explicit budget holds no block, or less than an explicit max_model_len.
CacheSize size_cache(const DecoderConfig& config, const CacheRequest& request,
                     size_t free_memory_bytes);

// Bytes of a token's keys and values in all layers that have their own.
size_t kv_token_bytes(const DecoderConfig& config, DType dtype);

// Those that one layer of attention reads, which may be another one's.
size_t kv_read_bytes(const DecoderConfig& config, int64_t layer_index, DType dtype);

// Bytes of the keys, values and states of a sequence of `length` tokens.
size_t sequence_bytes(const DecoderConfig& config, int64_t length, DType dtype, DType state_dtype);

// Bytes over all layers of a sequence's state, and of the rows of its open chunk.
struct StateBytes {
  size_t state = 0;
  size_t open_rows = 0;
};
StateBytes state_bytes_of(const DecoderConfig& config, DType dtype);

}  // namespace paceline
