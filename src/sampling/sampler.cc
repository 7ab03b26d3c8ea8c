#include "sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "sampling/allowed_tokens.h"
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
  BlockedRow row;             // the row to draw from
  BlockedRow raw_row;         // the model's logits, for log-probabilities
  Candidates candidates;
  std::vector<uint64_t> block_sums;
};

namespace {

bool is_adjusted(const LogitsRow& row, const SamplingOptions& options,
                 const TokenHistory& history) {
  return !row.allowed.empty() || changes_logits(options, history);
}

SampleStatus status_of(const BlockedRow& row) {
  if (row.has_nan()) return SampleStatus::nan_logits;
  return std::isfinite(row.max()) ? SampleStatus::ok : SampleStatus::nothing_to_draw;
}

}  // namespace

Sampler::Sampler(Memory& memory, int64_t vocab_size) : vocab_size_(vocab_size) {
  PL_CHECK(vocab_size > 0, "there is at least one token");
  if (vocab_size > kMaxWeights) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("vocab_size: found {}, sampling takes at most {}", vocab_size, kMaxWeights));
  }
  scratch_ = std::make_unique<Scratch>(memory, vocab_size);
}

Sampler::~Sampler() = default;

SampleStatus Sampler::scan_adjusted(const LogitsRow& row, const SamplingOptions& options,
                                    const TokenHistory& history) {
  const std::span<const float> logits = row.logits;
  PL_CHECK(static_cast<int64_t>(logits.size()) == vocab_size_, "a row has one logit per token");
  Scratch& s = *scratch_;
  if (is_adjusted(row, options, history)) {
    if (row.allowed.empty()) {
      std::copy(logits.begin(), logits.end(), s.adjusted.begin());
    } else {
      copy_allowed(logits, row.allowed, s.adjusted);
    }
    apply_penalties(s.adjusted, options, history);
    s.row.scan(s.adjusted);
  } else {
    s.row.scan(logits);
  }
  const SampleStatus status = status_of(s.row);
  const bool is_masked = status == SampleStatus::nothing_to_draw &&
                         s.row.max() == -std::numeric_limits<float>::infinity();
  // If the model's own row has no finite logit, the mask isn't the reason.
  if (is_masked &&
      std::any_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) {
    return SampleStatus::all_forbidden;
  }
  return status;
}

bool Sampler::truncate_row(const SamplingOptions& options) {
  Scratch& s = *scratch_;
  if (!truncate(s.row, options, s.block_sums, s.candidates)) return false;
  if (options.order == SamplerOrder::mlx) {
    // Typical-p may leave out the largest of the row, beside which others might weigh nothing.
    const auto logits = s.candidates.logits();
    s.candidates.weigh(
        Weigher(*std::max_element(logits.begin(), logits.end()), options.temperature));
  }
  return true;
}

int32_t Sampler::choose(const SamplingOptions& options, uint64_t key) {
  Scratch& s = *scratch_;
  if (options.temperature == 0.0f) return s.row.argmax();
  if (truncate_row(options)) return draw_candidate(s.candidates, key);
  return draw_from_row(s.row, Weigher(s.row.max(), options.temperature), key);
}

Sample Sampler::draw(const LogitsRow& row, const SamplingOptions& options,
                     const TokenHistory& history, int64_t position) {
  Sample sample;
  sample.status = scan_adjusted(row, options, history);
  if (sample.status != SampleStatus::ok) return sample;
  sample.id = choose(options, draw_key(options.seed, position));
  if (!row.log_sum_exp) return sample;
  Scratch& s = *scratch_;
  if (!is_adjusted(row, options, history)) {
    return with_logprobs(s.row, *row.log_sum_exp, sample.id, options);
  }
  s.raw_row.scan(row.logits);
  return with_logprobs(s.raw_row, *row.log_sum_exp, sample.id, options);
}

SampleStatus Sampler::distribution(const LogitsRow& row, const SamplingOptions& options,
                                   const TokenHistory& history, Distribution& out) {
  out.ids.clear();
  out.weights.clear();
  out.total = 0;
  const SampleStatus status = scan_adjusted(row, options, history);
  if (status != SampleStatus::ok) return status;
  Scratch& s = *scratch_;
  if (options.temperature == 0.0f) {
    out.ids.push_back(s.row.argmax());
    out.weights.push_back(kWeightOne);
    out.total = kWeightOne;
    return status;
  }
  if (!truncate_row(options)) {
    const Weigher weigher(s.row.max(), options.temperature);
    s.candidates.collect(s.row, weigher.cutoff(0.0));
    s.candidates.weigh(weigher);
  }
  const auto weights = s.candidates.weights();
  s.candidates.keep_if([&](int64_t i) { return weights[static_cast<size_t>(i)] > 0; });
  out.ids.assign(s.candidates.ids().begin(), s.candidates.ids().end());
  out.weights.assign(s.candidates.weights().begin(), s.candidates.weights().end());
  out.total = s.candidates.total_weight();
  return status;
}

Sample Sampler::chosen(const LogitsRow& row, const SamplingOptions& options, int32_t id) {
  if (!row.log_sum_exp) {
    Sample sample;
    sample.id = id;
    return sample;
  }
  scratch_->raw_row.scan(row.logits);
  return with_logprobs(scratch_->raw_row, *row.log_sum_exp, id, options);
}

Sample Sampler::score(const LogitsRow& row, int32_t id, int32_t num_top_logprobs) {
  PL_CHECK(std::ssize(row.logits) == vocab_size_, "a row has one logit per token");
  PL_CHECK(id >= 0 && id < vocab_size_, "token id out of the vocabulary");
  PL_CHECK(row.log_sum_exp.has_value(), "a row that scores has its log_sum_exp");
  BlockedRow& raw_row = scratch_->raw_row;
  raw_row.scan(row.logits);
  Sample failed;
  failed.status = status_of(raw_row);
  if (failed.status != SampleStatus::ok) return failed;
  return with_logprobs(raw_row, *row.log_sum_exp, id, {{.num_top_logprobs = num_top_logprobs}});
}

Sample Sampler::with_logprobs(BlockedRow& row, float log_sum_exp, int32_t id,
                              const SamplingOptions& options) {
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
