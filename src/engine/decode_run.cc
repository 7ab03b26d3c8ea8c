#include "engine/decode_run.h"

#include <algorithm>

#include "base/error.h"
#include "sampling/token_mask.h"

namespace paceline {
namespace {

size_t ends_of(const GenerateRequest& request) {
  return request.eos_tokens.size() + request.stop_token_ids.size();
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

// `ends` has the eos tokens, then the request's own stop tokens. Until it has drawn min_tokens, the
// sequence forbids them by biases, which the loop does instead.
DecodeTerms DecodeRun::terms_of(const Sequence& sequence, int64_t num_steps,
                                std::span<const TokenId> ends, const RowDraw& draw) {
  const GenerateRequest& request = sequence.request();
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

void DecodeRun::start(const StepBatch& batch, int64_t num_steps) {
  adapters_.clear();
  end_ids_.clear();
  draws_.clear();
  terms_.clear();
  for (const StepSlice& slice : batch.slices()) {
    const GenerateRequest& request = slice.sequence->request();
    if (request.adapter != nullptr) adapters_.push_back(request.adapter);
    draws_.add({.options = slice.sequence->sampling,
                .history = slice.sequence->history,
                .position = slice.sequence->num_tokens(),
                .wants_logprob = request.want_logprobs},
               vocab_size_);
    end_ids_.insert(end_ids_.end(), request.eos_tokens.begin(), request.eos_tokens.end());
    end_ids_.insert(end_ids_.end(), request.stop_token_ids.begin(), request.stop_token_ids.end());
  }
  std::span<const TokenId> ends = end_ids_;
  for (const StepSlice& slice : batch.slices()) {
    const size_t count = ends_of(slice.sequence->request());
    const RowDraw& draw = draws_.draws()[terms_.size()];
    terms_.push_back(terms_of(*slice.sequence, num_steps, ends.first(count), draw));
    ends = ends.subspan(count);
  }
  loop_->start(batch.batch(), terms_);
  steps_left_ = num_steps;
}

std::span<const DecodedToken> DecodeRun::next() {
  PL_CHECK(is_active(), "a run has steps left");
  --steps_left_;
  return loop_->next(is_active() ? DecodeLoop::Then::goes_on : DecodeLoop::Then::ends);
}

void DecodeRun::stop() {
  steps_left_ = 0;
  adapters_.clear();
}

}  // namespace paceline
