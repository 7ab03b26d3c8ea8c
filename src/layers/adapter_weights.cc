#include "layers/adapter_weights.h"

#include <algorithm>

#include "kernels/backend.h"
#include "kernels/decode_slots.h"

namespace paceline {
namespace {

// The most of a product.
int64_t padded_ranks(const BlockPairs& products) {
  int64_t most = 0;
  for (const std::vector<AdapterPair>& pairs : products) {
    int64_t ranks = 0;
    const PackedMatrix* before = nullptr;
    for (const AdapterPair& pair : pairs) {
      if (pair.a != before) ranks += pair.a->num_panels() * kPanelWidth;
      before = pair.a;
    }
    most = std::max(most, ranks);
  }
  return most;
}

LoraSegment segment_of(const AdapterPair& pair, int64_t first_row, int64_t num_rows) {
  return {.first_row = first_row,
          .num_rows = num_rows,
          .a = pair.a,
          .first_rank = pair.first_rank,
          .b = pair.b,
          .first_column = pair.first_column};
}

}  // namespace

size_t AdapterWeights::size_bytes() const {
  size_t total = 0;
  for (const auto& matrix : matrices) total += static_cast<size_t>(matrix->bytes());
  return total;
}

int64_t AdapterWeights::max_ranks() const {
  int64_t most = 0;
  for (const BlockPairs& block : blocks) most = std::max(most, padded_ranks(block));
  for (const std::vector<BlockPairs>& layer : experts) {
    for (const BlockPairs& expert : layer) most = std::max(most, padded_ranks(expert));
  }
  return most;
}

AdaptedRows adapted_rows(const BatchAdapters& adapters) {
  const auto* const rows = std::get_if<AdaptedRows>(&adapters);
  return rows != nullptr ? *rows : AdaptedRows{};
}

bool BlockAdapters::change(BlockProduct product) const {
  if (!std::holds_alternative<AdaptedRows>(adapters_)) return true;
  const AdaptedRows adapted = adapted_rows(adapters_);
  return std::ranges::any_of(adapted.rows, [&](const AdapterRows& rows) {
    return !pairs(adapted.weights_of(rows), product).empty();
  });
}

void BlockAdapters::list(BlockProduct product, std::vector<LoraSegment>& segments) const {
  segments.clear();
  const AdaptedRows adapted = adapted_rows(adapters_);
  for (const AdapterRows& rows : adapted.rows) {
    for (const AdapterPair& pair : pairs(adapted.weights_of(rows), product)) {
      segments.push_back(segment_of(pair, rows.first_row, rows.num_rows));
    }
  }
}

void BlockAdapters::add(Backend& backend, BlockProduct product, const Tensor& x,
                        const Tensor& out) const {
  if (const auto* const slots = std::get_if<AdapterSlots>(&adapters_)) {
    return slots->get().add_lora(product_index(block_, product), x, out);
  }
  if (const auto* const observed = std::get_if<ObservedInputs>(&adapters_)) {
    return observed->get().observe(block_, product, x);
  }
  list(product, segments_);
  if (!segments_.empty()) backend.add_lora(x, segments_, out);
}

bool BlockAdapters::change_experts() const {
  const AdaptedRows adapted = adapted_rows(adapters_);
  return std::ranges::any_of(adapted.rows, [&](const AdapterRows& rows) {
    return !adapted.weights_of(rows).experts[block_].empty();
  });
}

void BlockAdapters::list_expert(size_t expert, BlockProduct product,
                                std::span<const int32_t> batch_rows, int64_t first_row,
                                std::vector<LoraSegment>& segments) const {
  const AdaptedRows adapted = adapted_rows(adapters_);
  for (const AdapterRows& rows : adapted.rows) {
    const auto& experts = adapted.weights_of(rows).experts[block_];
    if (experts.empty()) continue;
    const auto begin = std::ranges::lower_bound(batch_rows, rows.first_row);
    const auto end = std::ranges::lower_bound(batch_rows, rows.first_row + rows.num_rows);
    if (begin == end) continue;
    for (const AdapterPair& pair : experts[expert][static_cast<size_t>(product)]) {
      segments.push_back(segment_of(pair, first_row + (begin - batch_rows.begin()), end - begin));
    }
  }
}

}  // namespace paceline
