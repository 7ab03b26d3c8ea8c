// ScriptDrafter draws its proposals from the rows of a script, as the engine will, and errs at
// times.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sampling/sampler.h"
#include "spec/drafter.h"
#include "tensor/memory.h"
#include "tests/engine/scripted_runner.h"

namespace paceline::testing {

class ScriptDrafter : public Drafter {
 public:
  // `errs(position)`: whether the token proposed for it is another one than the script's.
  ScriptDrafter(int64_t vocab_size, Script script, std::function<bool(int64_t position)> errs)
      : vocab_size_(vocab_size),
        script_(std::move(script)),
        errs_(std::move(errs)),
        sampler_(memory_, vocab_size),
        row_(static_cast<size_t>(vocab_size)) {}

  std::string_view name() const override { return "script"; }

  std::unique_ptr<DraftState> begin(std::span<const int32_t> /*prompt*/,
                                    std::span<const int32_t> /*prediction*/) override {
    ++num_begun;
    return std::make_unique<DraftState>();
  }

  int64_t prospects(DraftState& /*state*/, std::span<const int32_t> /*tokens*/,
                    int64_t most) override {
    return most;
  }

  void propose(std::span<const DraftRequest> requests) override {
    ++num_proposals;
    if (fails && fails(num_proposals)) throw Error(ErrorCode::exhausted, "no memory for drafts");
    for (const DraftRequest& request : requests) propose_for(request);
  }

  int64_t num_begun = 0;
  int64_t num_proposals = 0;
  std::function<bool(int64_t proposal)> fails;
  bool heeds_masks = true;  // draws what the constraint allows

 private:
  void propose_for(const DraftRequest& request) {
    int32_t last = request.tokens.back();
    auto position = std::ssize(request.tokens);
    for (int64_t i = 0; i < request.most; ++i, ++position) {
      std::fill(row_.begin(), row_.end(), 0.0f);
      script_(last, static_cast<int32_t>(position - 1), row_);
      LogitsRow row{.logits = row_};
      const bool is_masked = heeds_masks && request.mask != nullptr;
      if (is_masked) {
        row.allowed = request.mask->allowed();
        if (row.allowed.empty()) return;
      }
      const Sample sample = sampler_.draw(row, *request.sampling, *request.history, position);
      if (sample.status != SampleStatus::ok) return;
      if (request.wants_distributions) {
        sampler_.distribution(row, *request.sampling, *request.history,
                              request.draft->distributions.emplace_back());
      }
      last = errs_(position) ? static_cast<int32_t>((sample.id + 1) % vocab_size_) : sample.id;
      request.draft->tokens.push_back(last);
      if (is_masked && last != sample.id) return;
      if (is_masked) request.mask->accept(last);
    }
  }

  int64_t vocab_size_;
  Script script_;
  std::function<bool(int64_t)> errs_;
  Memory memory_;
  Sampler sampler_;
  std::vector<float> row_;
};

}  // namespace paceline::testing
