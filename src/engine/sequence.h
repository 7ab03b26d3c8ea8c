// Sequence is one request's tokens and how many of them have their keys and values in the cache.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request.h"
#include "kv/kv_cache.h"
#include "layers/batch.h"

namespace paceline {

struct Sequence {
  Sequence(KvCache& cache, std::vector<TokenId> ids) : tokens(std::move(ids)), blocks(cache) {}

  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_uncomputed() const { return num_tokens() - num_computed; }

  std::vector<TokenId> tokens;
  int64_t num_computed = 0;
  SequenceBlocks blocks;
};

// Which rows of a slice leave the decoder.
enum class Outputs : uint8_t { none, last, all };

// Reserves slots for the next `count` uncomputed tokens of `sequence` and adds them to `batch` as a
// slice. Throws Error exhausted when the cache has no room; then nothing has changed.
void add_slice(KvCache& cache, Sequence& sequence, int64_t count, Outputs outputs, Batch& batch);

}  // namespace paceline
