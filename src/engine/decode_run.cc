#include "engine/decode_run.h"

#include <algorithm>

#include "base/error.h"
#include "sampling/token_mask.h"

namespace paceline {
namespace {

// Until it has drawn min_tokens, the sequence forbids its end tokens by biases, which the loop does
// instead.
DecodeTerms terms_of(const Sequence& sequence, int64_t num_steps, const RowDraw& draw) {
  const GenerateRequest& request = sequence.request();
  const std::span<const TokenId> ends = sequence.shared->ends;
  DecodeTerms terms{.num_steps = std::min(num_steps, sequence.num_run_steps),
                    .stop_ids = request.ignore_eos ? ends.subspan(request.eos_tokens.size()) : ends,
                    .draw = draw};
  const int64_t missing = request.min_tokens - sequence.stats.output_tokens;
  if (missing <= 0) return terms;
  terms.forbidden_ids = ends;
  terms.num_forbidding = missing;
  terms.draw.logit_bias = request.sampling.logit_bias;
  return terms;
}

}  // namespace

DecodeRun::DecodeRun(Runner& runner, int64_t max_steps)
    : vocab_size_(runner.vocab_size()),
      loop_(max_steps > 1 ? runner.decode_loop() : nullptr),
      max_steps_(max_steps) {}

int64_t DecodeRun::max_steps(int64_t num_sequences) const {
  return loop_ != nullptr && num_sequences <= loop_->max_sequences() ? max_steps_ : 1;
}

int64_t DecodeRun::steps_of(const Sequence& sequence) const {
  const GenerateRequest& request = sequence.request();
  const TokenMask* const mask = sequence.sampling.mask.get();
  if (loop_ == nullptr || (request.adapter != nullptr && !loop_->takes_adapters())) return 0;
  if (sequence.num_output() == 0 || sequence.constraint != nullptr || sequence.num_unforked > 0 ||
      request.prefix.scope.stretched > 0 || (mask != nullptr && mask->reads_output())) {
    return 0;
  }
  return request.max_tokens - sequence.stats.output_tokens;
}

void DecodeRun::start(const StepBatch& batch, AdapterTable adapters, int64_t num_steps) {
  adapters_.clear();
  draws_.clear();
  terms_.clear();
  for (const StepSlice& slice : batch.slices()) {
    const Sequence& sequence = *slice.sequence;
    const GenerateRequest& request = sequence.request();
    if (request.adapter != nullptr) adapters_.push_back(request.adapter);
    draws_.add({.options = sequence.sampling,
                .history = sequence.history,
                .position = sequence.num_tokens(),
                .wants_logprob = request.want_logprobs},
               vocab_size_);
    terms_.push_back(terms_of(sequence, num_steps, draws_.draws().back()));
  }
  loop_->start(batch.batch(), adapters, terms_);
  steps_left_ = num_steps;
  num_read_ = 0;
}

std::span<const DecodedToken> DecodeRun::next() {
  PL_CHECK(is_active(), "a run has steps left");
  --steps_left_;
  ++num_read_;
  return loop_->next(is_active() ? DecodeLoop::Then::goes_on : DecodeLoop::Then::ends);
}

bool DecodeRun::is_ahead(int64_t slice, const DecodedToken& token) const {
  const DecodeTerms& terms = terms_[static_cast<size_t>(slice)];
  return is_active() && token.status == DecodedToken::Status::ok && num_read_ < terms.num_steps &&
         std::ranges::find(terms.stop_ids, token.id) == terms.stop_ids.end();
}

void DecodeRun::stop() {
  steps_left_ = 0;
  adapters_.clear();
}

}  // namespace paceline
