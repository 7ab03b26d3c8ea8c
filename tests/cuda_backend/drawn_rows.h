// A batch of rows, drawn where a backend has the logits and by the CPU's sampler.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "engine/row_draws.h"
#include "kernels/backend.h"
#include "kernels/row_sampler.h"
#include "sampling/sampler.h"
#include "tests/sampling/random_draw.h"

namespace paceline::testing {

// Rows of one width. Some have no log-probabilities, some a token that comes without a draw.
class DrawnRows {
 public:
  DrawnRows(Backend& backend, const std::vector<RandomDraw>& rows)
      : backend_(backend), rows_(rows) {
    const auto count = std::ssize(rows), width = std::ssize(rows[0].logits);
    logits_ = allocate_tensor(backend.memory(), DType::f32, {count, width});
    for (int64_t i = 0; i < count; ++i) {
      backend.write(rows[static_cast<size_t>(i)].logits, logits_.view.slice(0, i, i + 1));
    }
  }

  // `part` rows at once.
  std::vector<Sample> on_device(int64_t part) {
    const int64_t count = logits_.view.size(0), width = logits_.view.size(1);
    RowDraws draws;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const RandomDraw& row = rows_[i];
      draws.add({.options = row.options,
                 .history = row.history,
                 .allowed = row.allowed,
                 .position = row.position,
                 .chosen = chosen(i),
                 .wants_logprob = wants_logprob(i)},
                width);
    }
    RowSampler& sampler = *backend_.row_sampler();
    sampler.begin(draws.draws(), width);
    for (int64_t first = 0; first < count; first += part) {
      sampler.draw(first, logits_.view.slice(0, first, std::min(count, first + part)));
    }
    std::vector<Sample> samples(rows_.size());
    sampler.finish(samples);
    return samples;
  }

  std::vector<Sample> on_cpu() {
    Memory memory;
    Sampler sampler(memory, logits_.view.size(1));
    std::vector<float> sums(rows_.size());
    backend_.log_sum_exp(logits_.view, sums);
    std::vector<Sample> samples;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const RandomDraw& row = rows_[i];
      LogitsRow logits{.logits = row.logits, .allowed = row.allowed};
      if (wants_logprob(i)) logits.log_sum_exp = sums[i];
      samples.push_back(chosen(i) ? sampler.chosen(logits, row.options, *chosen(i))
                                  : sampler.draw(logits, row.options, row.history, row.position));
    }
    return samples;
  }

 private:
  static bool wants_logprob(size_t i) { return i % 3 != 1; }
  std::optional<int32_t> chosen(size_t i) const {
    const auto tokens = rows_[i].history.tokens();
    if (i % 11 != 4 || tokens.empty()) return std::nullopt;
    return tokens[0].id;
  }

  Backend& backend_;
  const std::vector<RandomDraw>& rows_;
  OwnedTensor logits_;
};

inline bool has_same_bits(const Sample& a, const Sample& b) {
  const auto same = [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  };
  return a.status == b.status && a.id == b.id && same(a.logprob, b.logprob) &&
         std::ranges::equal(a.top_logprobs, b.top_logprobs,
                            [&same](const TokenLogprob& x, const TokenLogprob& y) {
                              return x.id == y.id && same(x.logprob, y.logprob);
                            });
}

}  // namespace paceline::testing
