#include "engine/decode_run.h"

#include <algorithm>

#include "base/error.h"
#include "sampling/penalties.h"

namespace paceline {
namespace {

// Whether the sampler takes the largest raw logit and reports nothing beside it.
bool takes_largest(const GenerateRequest& request, const SamplingOptions& sampling) {
  const bool reports_others = request.want_logprobs && (sampling.num_top_logprobs > 0 ||
                                                        !sampling.logprob_token_ids.empty());
  return sampling.temperature == 0.0f && !penalises(sampling) && sampling.logit_bias.empty() &&
         sampling.mask == nullptr && !reports_others;
}

}  // namespace

DecodeRun::DecodeRun(Runner& runner, int64_t max_steps)
    : loop_(max_steps > 1 ? runner.decode_loop() : nullptr), max_steps_(max_steps) {}

int64_t DecodeRun::max_steps(int64_t num_sequences) const {
  return loop_ != nullptr && num_sequences <= loop_->max_sequences() ? max_steps_ : 1;
}

int64_t DecodeRun::steps_of(const Sequence& sequence) {
  const GenerateRequest& request = sequence.request();
  if (sequence.num_output() == 0 || sequence.constraint != nullptr || sequence.num_unforked > 0 ||
      request.adapter != nullptr || request.prefix.scope.stretched > 0 ||
      !takes_largest(request, sequence.sampling)) {
    return 0;
  }
  return request.max_tokens - sequence.stats.output_tokens;
}

void DecodeRun::start(const StepBatch& batch, int64_t num_steps) {
  sequences_.clear();
  stop_ids_.clear();
  terms_.clear();
  for (const StepSlice& slice : batch.slices()) {
    const GenerateRequest& request = slice.sequence->request();
    sequences_.push_back(slice.sequence);
    if (!request.ignore_eos) {
      stop_ids_.insert(stop_ids_.end(), request.eos_tokens.begin(), request.eos_tokens.end());
    }
    stop_ids_.insert(stop_ids_.end(), request.stop_token_ids.begin(), request.stop_token_ids.end());
  }
  size_t next = 0;
  for (const Sequence* sequence : sequences_) {
    const GenerateRequest& request = sequence->request();
    const size_t count =
        (request.ignore_eos ? 0 : request.eos_tokens.size()) + request.stop_token_ids.size();
    terms_.push_back({.num_steps = std::min(num_steps, sequence->num_run_steps),
                      .wants_logprob = request.want_logprobs,
                      .stop_ids = std::span<const TokenId>(stop_ids_).subspan(next, count)});
    next += count;
  }
  loop_->start(batch.batch(), terms_);
  steps_left_ = num_steps;
}

int64_t DecodeRun::num_sequences() const {
  return std::count_if(sequences_.begin(), sequences_.end(),
                       [](const Sequence* one) { return one != nullptr; });
}

void DecodeRun::forget_finished() {
  for (Sequence*& sequence : sequences_) {
    if (sequence != nullptr && sequence->finished) sequence = nullptr;
  }
}

std::span<const DecodedToken> DecodeRun::next(bool ends) {
  PL_CHECK(is_active(), "a run has steps left");
  steps_left_ = ends ? 0 : steps_left_ - 1;
  return loop_->next(steps_left_ == 0 ? DecodeLoop::Then::ends : DecodeLoop::Then::goes_on);
}

void DecodeRun::stop() {
  steps_left_ = 0;
  sequences_.clear();
}

}  // namespace paceline
