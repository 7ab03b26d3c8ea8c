#include "sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "sampling/blocked_row.h"
#include "sampling/candidates.h"
#include "sampling/draw.h"
#include "sampling/logprobs.h"
#include "sampling/penalties.h"
#include "sampling/truncation.h"
#include "sampling/weights.h"
#include "tensor/buffer.h"

namespace paceline {

struct Sampler::Scratch {
  Scratch(Memory& memory, int64_t vocab_size)
      : adjusted_buffer(memory, static_cast<size_t>(vocab_size) * sizeof(float)),
        adjusted(static_cast<float*>(adjusted_buffer.get()), static_cast<size_t>(vocab_size)),
        row(vocab_size),
        raw_row(vocab_size),
        candidates(memory, vocab_size),
        block_sums(static_cast<size_t>(vocab_size / BlockedRow::kBlockSize + 1)) {}

  Buffer adjusted_buffer;
  std::span<float> adjusted;  // [vocab_size] logits after penalties and bias
  BlockedRow row;             // what is drawn from
  BlockedRow raw_row;         // the model's logits, for log-probabilities
  Candidates candidates;
  std::vector<uint64_t> block_sums;
};

namespace {

SampleStatus status_of(const BlockedRow& row) {
  if (row.has_nan()) return SampleStatus::nan_logits;
  return std::isfinite(row.max()) ? SampleStatus::ok : SampleStatus::nothing_to_draw;
}

}  // namespace

Sampler::Sampler(Backend& backend, Memory& memory, int64_t vocab_size)
    : backend_(backend), vocab_size_(vocab_size) {
  PL_CHECK(vocab_size > 0, "there is at least one token");
  if (vocab_size > kMaxWeights) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("vocab_size: found {}, sampling takes at most {}", vocab_size, kMaxWeights));
  }
  scratch_ = std::make_unique<Scratch>(memory, vocab_size);
}

Sampler::~Sampler() = default;

SampleStatus Sampler::scan_adjusted(std::span<const float> logits, const SamplingOptions& options,
                                    const TokenHistory& history) {
  PL_CHECK(static_cast<int64_t>(logits.size()) == vocab_size_, "a row has one logit per token");
  Scratch& s = *scratch_;
  if (changes_logits(options, history)) {
    std::copy(logits.begin(), logits.end(), s.adjusted.begin());
    apply_penalties(s.adjusted, options, history);
    s.row.scan(s.adjusted);
  } else {
    s.row.scan(logits);
  }
  const SampleStatus status = status_of(s.row);
  const bool is_masked = status == SampleStatus::nothing_to_draw && s.row.max() < 0;
  // The model's own row may be at fault.
  if (is_masked &&
      std::any_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) {
    return SampleStatus::all_forbidden;
  }
  return status;
}

int32_t Sampler::choose(const SamplingOptions& options, double uniform) {
  Scratch& s = *scratch_;
  if (options.temperature == 0.0f) return s.row.argmax();
  const Weigher weigher(s.row.max(), options.temperature);
  if (!truncate(s.row, options, s.block_sums, s.candidates))
    return draw_from_row(s.row, weigher, uniform, s.block_sums);
  if (options.order == SamplerOrder::mlx) s.candidates.weigh(weigher);
  return draw_candidate(s.candidates, uniform);
}

Sample Sampler::draw(std::span<const float> logits, const SamplingOptions& options,
                     const TokenHistory& history, int64_t position, bool want_logprobs) {
  Sample sample;
  sample.status = scan_adjusted(logits, options, history);
  if (sample.status != SampleStatus::ok) return sample;
  sample.id = choose(options, uniform_draw(options.seed, static_cast<uint64_t>(position)));
  if (!want_logprobs) return sample;
  Scratch& s = *scratch_;
  if (!changes_logits(options, history)) return with_logprobs(s.row, logits, sample.id, options);
  s.raw_row.scan(logits);
  return with_logprobs(s.raw_row, logits, sample.id, options);
}

Distribution Sampler::distribution(std::span<const float> logits, const SamplingOptions& options,
                                   const TokenHistory& history) {
  Distribution distribution;
  distribution.status = scan_adjusted(logits, options, history);
  if (distribution.status != SampleStatus::ok) return distribution;
  Scratch& s = *scratch_;
  if (options.temperature == 0.0f) {
    distribution.tokens.push_back({s.row.argmax(), kWeightOne});
    return distribution;
  }
  if (!truncate(s.row, options, s.block_sums, s.candidates))
    s.candidates.collect(s.row, -std::numeric_limits<float>::max());
  s.candidates.weigh(Weigher(s.row.max(), options.temperature));
  for (size_t i = 0; i < s.candidates.ids().size(); ++i) {
    if (s.candidates.weights()[i] > 0)
      distribution.tokens.push_back({s.candidates.ids()[i], s.candidates.weights()[i]});
  }
  return distribution;
}

Sample Sampler::score(std::span<const float> logits, int32_t id, int32_t num_top_logprobs) {
  PL_CHECK(static_cast<int64_t>(logits.size()) == vocab_size_, "a row has one logit per token");
  PL_CHECK(id >= 0 && id < vocab_size_, "token id out of the vocabulary");
  BlockedRow& row = scratch_->raw_row;
  row.scan(logits);
  Sample failed;
  failed.status = status_of(row);
  return failed.status == SampleStatus::ok
             ? with_logprobs(row, logits, id, {.num_top_logprobs = num_top_logprobs})
             : failed;
}

Sample Sampler::with_logprobs(BlockedRow& row, std::span<const float> logits, int32_t id,
                              const SamplingOptions& options) {
  const float log_sum_exp = log_sum_exp_of(backend_, logits);
  Sample sample;
  sample.id = id;
  sample.logprob = logprob_of(row.at(id), log_sum_exp);
  if (options.logprob_token_ids.empty()) {
    sample.top_logprobs =
        top_logprobs(row, log_sum_exp, options.num_top_logprobs, scratch_->candidates);
  }
  for (const int32_t one : options.logprob_token_ids) {
    sample.top_logprobs.push_back({one, logprob_of(row.at(one), log_sum_exp)});
  }
  return sample;
}

}  // namespace paceline
