#include "engine/decode_run.h"

#include <algorithm>

#include "base/error.h"
#include "sampling/token_mask.h"

namespace paceline {
DecodeRun::DecodeRun(Runner& runner, int64_t max_steps)
    : vocab_size_(runner.vocab_size()),
      loop_(max_steps > 1 ? runner.decode_loop() : nullptr),
      max_steps_(max_steps) {}

int64_t DecodeRun::max_steps(int64_t num_sequences) const {
  return loop_ != nullptr && num_sequences <= loop_->max_sequences() ? max_steps_ : 1;
}

int64_t DecodeRun::steps_of(const Sequence& sequence) {
  const GenerateRequest& request = sequence.request();
  const TokenMask* const mask = sequence.sampling.mask.get();
  if (sequence.num_output() == 0 || sequence.constraint != nullptr || sequence.num_unforked > 0 ||
      request.adapter != nullptr || request.prefix.scope.stretched > 0 ||
      (mask != nullptr && mask->reads_output())) {
    return 0;
  }
  const int64_t drawn = sequence.stats.output_tokens;
  return drawn < request.min_tokens ? 0 : request.max_tokens - drawn;  // the ends are allowed then
}

void DecodeRun::start(const StepBatch& batch, int64_t num_steps) {
  sequences_.clear();
  stop_ids_.clear();
  draws_.clear();
  terms_.clear();
  for (const StepSlice& slice : batch.slices()) {
    const GenerateRequest& request = slice.sequence->request();
    sequences_.push_back(slice.sequence);
    draws_.add({.options = slice.sequence->sampling,
                .history = slice.sequence->history,
                .position = slice.sequence->num_tokens(),
                .wants_logprob = request.want_logprobs},
               vocab_size_);
    if (!request.ignore_eos) {
      stop_ids_.insert(stop_ids_.end(), request.eos_tokens.begin(), request.eos_tokens.end());
    }
    stop_ids_.insert(stop_ids_.end(), request.stop_token_ids.begin(), request.stop_token_ids.end());
  }
  size_t next = 0;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const Sequence* const sequence = sequences_[i];
    const GenerateRequest& request = sequence->request();
    const size_t count =
        (request.ignore_eos ? 0 : request.eos_tokens.size()) + request.stop_token_ids.size();
    terms_.push_back({.num_steps = std::min(num_steps, sequence->num_run_steps),
                      .stop_ids = std::span<const TokenId>(stop_ids_).subspan(next, count),
                      .draw = draws_.draws()[i]});
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
