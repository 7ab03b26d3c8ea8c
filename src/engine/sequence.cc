#include "engine/sequence.h"

#include <fmt/format.h>

#include "base/error.h"

namespace paceline {
namespace {

[[noreturn]] void out_of_blocks(const OutOfBlocks& failure, const KvCache& cache) {
  throw Error(ErrorCode::exhausted,
              fmt::format("key/value cache: {} more blocks of {} tokens are needed, {} are free of "
                          "{}; a shorter prompt or a larger --kv-cache-memory would fit",
                          failure.needed, cache.block_size(), failure.free,
                          cache.pool(failure.group).num_blocks()));
}

}  // namespace

void add_slice(KvCache& cache, Sequence& sequence, int64_t count, Outputs outputs, Batch& batch) {
  PL_CHECK(count > 0 && count <= sequence.num_uncomputed(), "slice beyond the sequence");
  const int64_t first_position = sequence.num_computed;
  cache.pass(sequence.blocks, first_position);
  const int64_t missing = first_position + count - sequence.blocks.length();
  if (missing > 0) {
    if (const auto failure = cache.append(sequence.blocks, missing)) out_of_blocks(*failure, cache);
  }
  const int64_t first_row = batch.num_rows();
  batch.groups.resize(static_cast<size_t>(cache.num_groups()));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = first_position + i;
    batch.tokens.push_back(sequence.tokens[static_cast<size_t>(position)]);
    batch.positions.push_back(static_cast<int32_t>(position));
    const bool is_output = outputs == Outputs::all || (outputs == Outputs::last && i == count - 1);
    if (is_output) batch.output_rows.push_back(static_cast<int32_t>(first_row + i));
  }
  for (int g = 0; g < cache.num_groups(); ++g) {
    GroupBatch& group = batch.groups[static_cast<size_t>(g)];
    for (int64_t i = 0; i < count; ++i) {
      group.slots.push_back(sequence.blocks.slot(g, first_position + i));
    }
    group.slices.push_back({.first_row = first_row,
                            .num_rows = count,
                            .first_position = first_position,
                            .block_table = sequence.blocks.table(g)});
  }
}

}  // namespace paceline
