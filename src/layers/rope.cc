#include "layers/rope.h"

#include "kernels/backend.h"
#include "layers/rope_frequencies.h"

namespace paceline {

int64_t RopeConfig::stretched_length(int64_t length) const {
  const auto original = static_cast<int64_t>(original_max_position);
  if (length <= original) return 0;
  if (scaling == RopeScaling::dynamic) return length;
  if (scaling == RopeScaling::by_frequency && !long_divisors.empty()) return original + 1;
  return 0;
}

Rope::Rope(const RopeConfig& config, int64_t rotary_dim, Backend& backend)
    : config_(config),
      rotary_dim_(rotary_dim),
      inv_freq_(write_vector(backend, rope_frequencies(config, rotary_dim, 0))),
      attention_factor_(static_cast<float>(config.attention_factor)),
      long_attention_factor_(config.long_attention_factor > 0
                                 ? static_cast<float>(config.long_attention_factor)
                                 : attention_factor_) {
  if (!config.long_divisors.empty()) {
    long_inv_freq_ = write_vector(backend, rope_frequencies(config, rotary_dim, 1));
  }
}

Tensor take_rope_table(Scratch& scratch, int64_t rows, int64_t num_frequencies) {
  return scratch.take(DType::f32, {rows, num_frequencies, 2});
}

Tensor Rope::table(Backend& backend, Indices<int32_t> positions,
                   std::span<const StretchedRows> stretched, Scratch& scratch) const {
  const Tensor table = take_rope_table(scratch, positions.size(), inv_freq_.view.size(0));
  write_table(backend, positions, stretched, table);
  return table;
}

void Rope::write_table(Backend& backend, Indices<int32_t> positions,
                       std::span<const StretchedRows> stretched, const Tensor& table) const {
  backend.rope_table(positions, inv_freq_.view, attention_factor_, table);
  for (const StretchedRows& rows : stretched) {
    const int64_t length = config_.stretched_length(rows.length);
    if (length == 0) continue;  // another rope of the model is stretched
    const auto of_rows = positions.host().subspan(static_cast<size_t>(rows.first_row),
                                                  static_cast<size_t>(rows.num_rows));
    const Tensor part = table.slice(0, rows.first_row, rows.first_row + rows.num_rows);
    if (config_.scaling != RopeScaling::dynamic) {
      backend.rope_table(of_rows, long_inv_freq_.view, long_attention_factor_, part);
      continue;
    }
    const OwnedTensor inv_freq =
        write_vector(backend, rope_frequencies(config_, rotary_dim_, length));
    backend.rope_table(of_rows, inv_freq.view, attention_factor_, part);
  }
}

}  // namespace paceline
