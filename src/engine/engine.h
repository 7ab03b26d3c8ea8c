// Engine computes all requests together, one step of the runner at a time; requests come and go
// between steps.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/event.h"
#include "engine/request.h"

namespace paceline {

class Channel;
class Drafter;
class StateCache;
class Memory;
class QueueLimit;
class Runner;
class StepObserver;
struct EngineCore;
struct Sequence;

// What a token adds to the output's text; nothing without a tokenizer.
struct TokenText {
  std::string_view bytes = {};
  bool is_special = false;
};
// Of any id of the runner's vocabulary, on any thread; without one there is no text.
using TokenTexts = std::function<TokenText(TokenId)>;

struct SpeculationCounters {
  int64_t drafts = 0;  // slices with drafted tokens
  int64_t drafted_tokens = 0;
  int64_t accepted_tokens = 0;  // of these, drawn
  int64_t failures = 0;         // of the drafter; these sequences were decoded without drafts
  std::array<int64_t, kMaxSpeculativeTokens> accepted_at = {};  // by position in the draft
};

struct ConstraintEngineCounters {
  int64_t forced_tokens = 0;  // computed ahead because constraints allow no other
  int64_t masked_steps = 0;   // sequences under constraints, over all steps
  double mask_seconds = 0;    // to find what they allow
  double wait_seconds = 0;    // of these, in which the engine waited
};

struct EngineCounters {
  int64_t steps = 0;
  int64_t run_steps = 0;  // of these, steps that a runner's decode loop took
  int64_t preemptions = 0;
  int64_t deferred_preemptions = 0;  // of these, deferred requests' in favour of others
  int64_t late_cancellations = 0;    // of requests that had ended
  int64_t dropped_holds = 0;         // held prefixes given up for want of blocks
  SpeculationCounters speculation;
  ConstraintEngineCounters constraints;
};

class Engine;
using EngineInspection = std::function<void(const Engine&)>;

// submit, cancel, release and the members marked so may be called from any thread; one thread calls
// step(). Everything referred to must outlive it.
class Engine {
 public:
  Engine(Runner& runner, Memory& memory, StateCache& cache, EngineLimits limits,
         TokenTexts token_texts, Drafter* drafter = nullptr);
  ~Engine();

  // Any thread. Checks the request (Error invalid names the field at fault, or exhausted when it
  // could never fit the cache) and leaves it for the next step; nothing when the queue is full. Its
  // events go to `channel` with `tag`.
  std::optional<RequestId> submit(GenerateRequest request, std::shared_ptr<Channel> channel,
                                  int64_t tag = 0);
  // Any thread. Takes effect in the next step; a request that has ended is ignored.
  void cancel(RequestId id);
  // Any thread. Releases the prefix that a request with `hold` keeps.
  void release(RequestId id);
  // Any thread. A deferred request computes as long as no other lacks its places or blocks: it is
  // preempted for requests that have waited for a step, and waits behind all others. resume() makes
  // it one of its own class again. A request that has ended is ignored.
  void defer(RequestId id);
  void resume(RequestId id);

  // Any thread. Calls `look` on the engine's thread before the next step, unless there is none; it
  // must neither block nor throw.
  void inspect(EngineInspection look);

  // One step: false when nothing is left to do.
  bool step();
  // What the runner's device said when it was lost, in a step whose sequences have failed with it:
  // those of later steps will, too. Empty: it is there.
  const std::string& lost_device() const;
  // Waits until that many requests have come, at most `timeout`; how many have.
  size_t wait_for_mail(std::chrono::milliseconds timeout, size_t at_least = 1);
  // Any thread. Ends a wait_for_mail.
  void wake();
  // Ends every request, as cancelled: no further step will come. Later submissions throw Error
  // cancelled.
  void end_all();

  // Any thread. What submit would throw, thrown; the request may be clamped to what there is room
  // for.
  void check(GenerateRequest& request) const;

  // Any thread, and constant.
  const EngineLimits& limits() const;
  int64_t vocab_size() const;
  int64_t block_size() const;  // of the key/value cache, in tokens
  bool keeps_states() const;   // in that cache: layers have some
  std::string_view token_bytes(TokenId id, SpecialTokens specials) const;

  // Any thread, as of the last step.
  int64_t num_running() const;
  int64_t num_waiting() const;
  const QueueLimit& queue() const;

  // The engine's thread.
  const StateCache& cache() const;
  std::span<const std::unique_ptr<Sequence>> running() const;
  std::span<const std::unique_ptr<Sequence>> waiting() const;
  // Of the requests that no step has begun to compute.
  std::vector<int64_t> unstarted_tags() const;
  const EngineCounters& counters() const;
  void set_observer(StepObserver* observer);
  // PL_CHECKs the cache against all that the engine holds.
  void check_integrity() const;

 private:
  std::unique_ptr<EngineCore> core_;
};

}  // namespace paceline
