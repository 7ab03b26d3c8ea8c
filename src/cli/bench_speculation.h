// Decodes the same prompts with and without drafts, and compares tokens and times.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cli/bench_plan.h"
#include "engine/engine.h"
#include "load/loaded_model.h"
#include "spec/replay_drafter.h"

namespace paceline {

// What decoding all prompts took. Steps count as long as all sequences of a group take part.
struct SpeculationSample {
  SpeculationLimits limits;  // num_tokens 0: without drafts
  int64_t tokens = 0;
  int64_t steps = 0;
  int64_t kv_bytes = 0;  // of keys and values that these read
  double seconds = 0;
  SpeculationCounters counters;
};

// Adds `counters` to `sum`.
void add_counters(const SpeculationCounters& counters, SpeculationCounters& sum, int64_t times = 1);

// Plain decoding and each length of drafts take turns with every group of prompts. All have engines
// of their own on the model's runner and cache. Prompts come from the prefix cache.
class SpeculationBench {
 public:
  // Decodes all prompts once without drafts. A replaying drafter then repeats these answers.
  SpeculationBench(LoadedModel& model, const BenchRun& run);
  ~SpeculationBench();

  // First without drafts, then by length of drafts, the adaptive one last. Throws Error internal
  // when drafts change a token.
  std::vector<SpeculationSample> measure();

 private:
  struct Side;

  void make_prompts(LoadedModel& model);
  void add_side(LoadedModel& model, const SpeculationLimits& limits);
  // Decodes the group of prompts that begins with `first`. The first answers are kept, later ones
  // compared with them.
  void decode(Side& side, size_t first, SpeculationSample& sample);
  ReplayOptions replay_options() const;
  void take_answer(size_t prompt, std::vector<TokenId> tokens);

  BenchRun run_;
  std::vector<GenerateRequest> prompts_;
  std::vector<std::vector<TokenId>> answers_;  // by prompt
  RecordedAnswers recorded_;
  bool must_agree_ = true;
  uint64_t seed_ = 0;
  std::vector<std::unique_ptr<Side>> sides_;  // the first without drafts
};

}  // namespace paceline
