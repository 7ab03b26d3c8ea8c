// ModelDrafter drafts with a second, smaller model of the same tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runner/batch_builder.h"
#include "runner/runner.h"
#include "sampling/sampler.h"
#include "spec/drafter.h"
#include "state/state_cache.h"

namespace paceline {

class Memory;

struct ModelDrafterLimits {
  int64_t vocab_size = 0;  // of the model that checks the drafts
  int64_t max_length = 0;  // tokens of a sequence that the drafter can read
  int64_t max_rows = 256;  // of one forward
};

// All sequences draft together, one forward a token, with keys and values of their own in `cache`
// (its keys for drafted tokens that were not drawn are given back with the next call). A token is
// drawn as the model will draw it: same options, same noise. Tokens that the drafter has not read
// yet are computed first, at most max_rows a call; until then it proposes nothing. A model with
// states drafts up to the end of a chunk (base/state_chunk.h). Logits beyond
// the other model's vocabulary are ignored, missing ones are minus infinity (rows of padding).
class ModelDrafter : public Drafter {
 public:
  // Everything referred to must outlive it.
  ModelDrafter(Runner& runner, StateCache& cache, Memory& memory, const ModelDrafterLimits& limits);
  ~ModelDrafter() override;

  std::string_view name() const override { return "model"; }
  bool computes_prompts() const override { return true; }
  std::unique_ptr<DraftState> begin(std::span<const int32_t> prompt,
                                    std::span<const int32_t> prediction) override;
  int64_t prospects(DraftState& state, std::span<const int32_t> tokens, int64_t most) override;
  void propose(std::span<const DraftRequest> requests) override;

 private:
  struct State;
  struct Job;

  int64_t most_drafted(int64_t length, int64_t most) const;
  int64_t resumable(const State& state, int64_t valid) const;
  void start(const DraftRequest& request);
  // Adds a job's next rows to the forward; false when it has none, or no room.
  bool add_rows(Job& job);
  void draw_all();
  void draw(Job& job, std::span<const float> logits);
  std::span<const float> common_logits(std::span<const float> row);

  Runner& runner_;
  StateCache& cache_;
  ModelDrafterLimits limits_;
  Sampler sampler_;
  BatchBuilder builder_;
  std::vector<Job> jobs_;
  std::vector<Job*> drawing_;  // in the order of the forward's outputs
  std::vector<float> row_;     // [vocab_size], where the drafter's row is shorter
};

}  // namespace paceline
