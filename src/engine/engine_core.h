// EngineCore is a step of the engine, and the parts that it is made of.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/time_source.h"
#include "engine/decode_run.h"
#include "engine/engine.h"
#include "engine/request_intake.h"
#include "engine/request_list.h"
#include "engine/speculation.h"
#include "engine/step_batch.h"
#include "engine/step_commit.h"
#include "engine/step_draws.h"
#include "engine/step_planner.h"
#include "engine/step_record.h"
#include "kv/kv_cache.h"
#include "runner/runner.h"

namespace paceline {

class EngineCore {
 public:
  EngineCore(const Engine& engine, Runner& runner, Memory& memory, KvCache& cache,
             const EngineLimits& limits, TokenTexts token_texts, Drafter* drafter);
  ~EngineCore() { end_all(); }

  // As Engine's.
  bool step();
  void end_all();
  const std::string& lost_device() const { return lost_device_; }
  std::string_view token_bytes(TokenId id, SpecialTokens specials) const {
    return commit_.token_bytes(id, specials);
  }
  int64_t vocab_size() const { return runner_.vocab_size(); }
  const EngineLimits& limits() const { return limits_; }
  const KvCache& cache() const { return cache_; }

  RequestIntake& intake() { return intake_; }
  const RequestList& requests() const { return requests_; }
  StepLog& log() { return log_; }

 private:
  // In the order of the step.
  void give_way();
  void apply();
  void fail_starved_sequence();
  void save_states();
  void build_batch();
  void go_on_running();
  void compute();
  void forward();
  void fail_batch(ErrorCode code, const std::string& message);
  void end_run();
  void publish();
  void show_record();

  Sequence& sequence_of(const PlannedSlice& slice) const {
    return *requests_.running()[static_cast<size_t>(slice.sequence)];
  }

  const Engine& engine_;  // for inspections
  Runner& runner_;
  KvCache& cache_;
  const EngineLimits limits_;
  const Clock::time_point created_ = Clock::now();
  StepLog log_;
  RequestIntake intake_;
  RequestList requests_;
  Speculation speculation_;
  DecodeRun run_;
  StepPlanner planner_;
  StepBatch batch_;
  StepDraws draws_;
  StepCommit commit_;
  std::string lost_device_;
};

}  // namespace paceline
