#include "layers/adapter_weights.h"

#include <algorithm>

#include "kernels/backend.h"
#include "kernels/decode_slots.h"

namespace paceline {

size_t AdapterWeights::size_bytes() const {
  size_t total = 0;
  for (const auto& matrix : matrices) total += static_cast<size_t>(matrix->bytes());
  return total;
}

int64_t AdapterWeights::max_ranks() const {
  int64_t most = 0;
  for (const BlockPairs& block : blocks) {
    for (const std::vector<AdapterPair>& pairs : block) {
      int64_t ranks = 0;
      const PackedMatrix* before = nullptr;
      for (const AdapterPair& pair : pairs) {
        if (pair.a != before) ranks += pair.a->num_panels() * kPanelWidth;
        before = pair.a;
      }
      most = std::max(most, ranks);
    }
  }
  return most;
}

bool BlockAdapters::change(BlockProduct product) const {
  return slots_ != nullptr || std::ranges::any_of(rows_, [&](const AdapterRows& rows) {
           return !pairs(rows, product).empty();
         });
}

void BlockAdapters::list(BlockProduct product, std::vector<LoraSegment>& segments) const {
  segments.clear();
  for (const AdapterRows& rows : rows_) {
    for (const AdapterPair& pair : pairs(rows, product)) {
      segments.push_back({.first_row = rows.first_row,
                          .num_rows = rows.num_rows,
                          .a = pair.a,
                          .first_rank = pair.first_rank,
                          .b = pair.b,
                          .first_column = pair.first_column});
    }
  }
}

void BlockAdapters::add(Backend& backend, BlockProduct product, const Tensor& x,
                        const Tensor& out) const {
  if (slots_ != nullptr) return slots_->add_lora(product_index(block_, product), x, out);
  list(product, segments_);
  if (!segments_.empty()) backend.add_lora(x, segments_, out);
}

}  // namespace paceline
