// StepEngine computes all requests together, one step of the runner at a time; requests come and go
// between steps.
#pragma once

#include <memory>
#include <span>

#include "engine/engine.h"

namespace paceline {

class Drafter;
class Memory;
class Runner;
class StateCache;
struct EngineCore;
struct Sequence;

// Everything referred to must outlive it.
class StepEngine final : public Engine {
 public:
  StepEngine(Runner& runner, Memory& memory, StateCache& cache, EngineLimits limits,
             TokenTexts token_texts, Drafter* drafter = nullptr);
  ~StepEngine() override;

  using Engine::submit;
  using Engine::wait_for_mail;
  std::optional<RequestId> submit(GenerateRequest request, std::shared_ptr<Channel> channel,
                                  int64_t tag) override;
  void cancel(RequestId id) override;
  void release(RequestId id) override;
  void defer(RequestId id) override;
  void resume(RequestId id) override;
  void inspect(EngineInspection look) override;
  bool step() override;
  const std::string& lost_device() const override;
  size_t wait_for_mail(std::chrono::milliseconds timeout, size_t at_least) override;
  void wake() override;
  void end_all() override;
  void check(GenerateRequest& request) const override;
  const EngineLimits& limits() const override;
  int64_t vocab_size() const override;
  int64_t block_size() const override;
  bool keeps_states() const override;
  std::string_view token_bytes(TokenId id, SpecialTokens specials) const override;
  int64_t num_running() const override;
  int64_t num_waiting() const override;
  const QueueLimit& queue() const override;
  EngineSnapshot snapshot() const override;
  std::vector<int64_t> unstarted_tags() const override;
  const EngineCounters& counters() const override;
  void set_observer(StepObserver* observer) override;

  // The engine's thread.
  const StateCache& cache() const;
  std::span<const std::unique_ptr<Sequence>> running() const;
  std::span<const std::unique_ptr<Sequence>> waiting() const;
  // PL_CHECKs the cache against all that the engine holds.
  void check_integrity() const;

 private:
  std::unique_ptr<EngineCore> core_;
};

}  // namespace paceline
