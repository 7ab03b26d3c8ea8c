// ReplayDrafter proposes the answers it was given, some tokens wrong: the benchmark's drafter of a
// chosen acceptance rate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/drafter.h"

namespace paceline {

// Prompts with the answers that follow them.
class RecordedAnswers {
 public:
  void add(std::span<const int32_t> prompt, std::span<const int32_t> answer);

  // What follows `text` in the first recorded prompt and answer that begin with it: for a prompt
  // its answer, for a preempted sequence the rest of it; else nothing.
  std::span<const int32_t> after(std::span<const int32_t> text) const;

 private:
  std::vector<std::vector<int32_t>> texts_;
};

struct ReplayOptions {
  // The tokens that follow a prompt; they outlive the sequence.
  std::function<std::span<const int32_t>(std::span<const int32_t> prompt)> answer;
  double wrong_probability = 0.0;  // of each token
  uint64_t seed = 0;
  int64_t vocab_size = 0;
};

// Whether a token is wrong depends on the seed, its position and itself alone, so batching and
// preemption change nothing. A wrong one is (token + 1) % vocab_size, and right ones may follow it.
class ReplayDrafter : public Drafter {
 public:
  explicit ReplayDrafter(ReplayOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "replay"; }
  std::unique_ptr<DraftState> begin(std::span<const int32_t> prompt,
                                    std::span<const int32_t> prediction) override;
  int64_t prospects(DraftState& state, std::span<const int32_t> tokens, int64_t most) override;
  void propose(std::span<const DraftRequest> requests) override;

 private:
  int32_t drafted(int32_t token, int64_t position) const;

  ReplayOptions options_;
};

}  // namespace paceline
