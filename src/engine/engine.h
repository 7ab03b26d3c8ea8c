// Engine takes requests of token ids and answers with tokens, as they come; StepEngine computes
// them here.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/event.h"
#include "engine/request.h"

namespace paceline {

class Channel;
class QueueLimit;
class StepObserver;
struct EngineSnapshot;

// What a token adds to the output's text; nothing without a tokenizer.
struct TokenText {
  std::string_view bytes = {};
  bool is_special = false;
};
// Of any id of the vocabulary, on any thread; without one there is no text.
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
// step().
class Engine {
 public:
  Engine() = default;
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Any thread. Checks the request (Error invalid names the field at fault, or exhausted when it
  // could never fit the cache) and leaves it for the next step; nothing when the queue is full. Its
  // events go to `channel` with `tag`.
  virtual std::optional<RequestId> submit(GenerateRequest request, std::shared_ptr<Channel> channel,
                                          int64_t tag) = 0;
  std::optional<RequestId> submit(GenerateRequest request, std::shared_ptr<Channel> channel) {
    return submit(std::move(request), std::move(channel), 0);
  }
  // Any thread. Takes effect in the next step; a request that has ended is ignored.
  virtual void cancel(RequestId id) = 0;
  // Any thread. Releases the prefix that a request with `hold` keeps.
  virtual void release(RequestId id) = 0;
  // Any thread. A deferred request computes as long as no other lacks its places or blocks: it is
  // preempted for requests that have waited for a step, and waits behind all others. resume() makes
  // it one of its own class again. A request that has ended is ignored.
  virtual void defer(RequestId id) = 0;
  virtual void resume(RequestId id) = 0;

  // Any thread. Calls `look` on the engine's thread before the next step, unless there is none; it
  // must neither block nor throw.
  virtual void inspect(EngineInspection look) = 0;

  // One step: false when nothing is left to do.
  virtual bool step() = 0;
  // What the device said when it was lost, in a step whose sequences have failed with it: those of
  // later steps will, too. Empty: it is there.
  virtual const std::string& lost_device() const = 0;
  // Waits until that many requests have come, at most `timeout`; how many have.
  virtual size_t wait_for_mail(std::chrono::milliseconds timeout, size_t at_least) = 0;
  size_t wait_for_mail(std::chrono::milliseconds timeout) { return wait_for_mail(timeout, 1); }
  // Any thread. Ends a wait_for_mail.
  virtual void wake() = 0;
  // Ends every request, as cancelled: no further step will come. Later submissions throw Error
  // cancelled.
  virtual void end_all() = 0;

  // Any thread. What submit would throw, thrown; the request may be clamped to what there is room
  // for.
  virtual void check(GenerateRequest& request) const = 0;

  // Any thread, and constant.
  virtual const EngineLimits& limits() const = 0;
  virtual int64_t vocab_size() const = 0;
  virtual int64_t block_size() const = 0;  // of the key/value cache, in tokens
  virtual bool keeps_states() const = 0;   // in that cache: layers have some
  virtual std::string_view token_bytes(TokenId id, SpecialTokens specials) const = 0;

  // Any thread, as of the last step.
  virtual int64_t num_running() const = 0;
  virtual int64_t num_waiting() const = 0;
  virtual const QueueLimit& queue() const = 0;

  // The engine's thread, between steps.
  virtual EngineSnapshot snapshot() const = 0;
  // Of the requests that no step has begun to compute.
  virtual std::vector<int64_t> unstarted_tags() const = 0;
  virtual const EngineCounters& counters() const = 0;
  virtual void set_observer(StepObserver* observer) = 0;
};

}  // namespace paceline
