// RequestIntake is how requests, cancellations and releases come to the engine's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <vector>

#include "engine/engine.h"
#include "engine/queue_limit.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "runner/runner.h"
#include "state/state_cache.h"

namespace paceline {

// The beginning or the end of a request's deferral.
struct Deferral {
  RequestId id = 0;
  bool begins = false;
};

// The messages since the last take(), in order of arrival.
struct Mail {
  std::vector<std::unique_ptr<Sequence>> submitted;  // the first choice of each request
  std::vector<RequestId> cancelled;
  std::vector<RequestId> released;  // whose held prefix may go
  std::vector<Deferral> deferrals;
  std::vector<EngineInspection> inspections;

  // Whether the sequences change.
  bool changes_requests() const {
    return !submitted.empty() || !cancelled.empty() || !released.empty() || !deferrals.empty();
  }
};

// Any thread but for take(). Everything referred to must outlive it.
class RequestIntake {
 public:
  RequestIntake(const Runner& runner, StateCache& cache, const EngineLimits& limits);

  // As Engine's.
  std::optional<RequestId> submit(GenerateRequest request, std::shared_ptr<Channel> channel,
                                  int64_t tag);
  // Later requests are refused.
  void close();
  void check(GenerateRequest& request) const;
  void cancel(RequestId id) { leave(&Mail::cancelled, id); }
  void release(RequestId id) { leave(&Mail::released, id); }
  void change(Deferral deferral) { leave(&Mail::deferrals, deferral); }
  void inspect(EngineInspection look) { leave(&Mail::inspections, std::move(look)); }

  // Submitted and not yet admitted.
  QueueLimit& queue() { return queue_; }

  // All messages. The engine's thread.
  Mail take();
  // Waits for `at_least` requests, another message or wake(), at most `timeout`. Returns the number
  // of requests.
  size_t wait(std::chrono::milliseconds timeout, size_t at_least = 1);
  void wake();

 private:
  template <class Message>
  void leave(std::vector<Message> Mail::*list, Message message) {
    {
      const std::lock_guard lock(mutex_);
      if constexpr (std::is_same_v<Message, std::unique_ptr<Sequence>>) check_open();
      (mail_.*list).push_back(std::move(message));
    }
    came_.notify_one();
  }

  void check_open() const;

  const Runner& runner_;
  StateCache& cache_;
  const EngineLimits& limits_;
  QueueLimit queue_;
  std::atomic<RequestId> next_id_ = 1;
  std::mutex mutex_;
  std::condition_variable came_;
  Mail mail_;
  bool woken_ = false;
  bool is_closed_ = false;
};

}  // namespace paceline
