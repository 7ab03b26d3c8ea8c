// Mailbox brings requests, cancellations and releases to the engine's thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/engine.h"
#include "engine/sequence.h"

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

  bool empty() const {
    return submitted.empty() && cancelled.empty() && released.empty() && deferrals.empty() &&
           inspections.empty();
  }
  void clear();
};

// Written from any thread, read by the engine's.
class Mailbox {
 public:
  void submit(std::unique_ptr<Sequence> sequence);
  void cancel(RequestId id);
  void release(RequestId id);
  void change(Deferral deferral);
  void inspect(EngineInspection look);

  // Moves all messages into `mail`, cleared first.
  void take(Mail& mail);
  // Waits for `at_least` requests, another message or wake(), at most `timeout`. Returns the number
  // of requests.
  size_t wait(std::chrono::milliseconds timeout, size_t at_least = 1);
  void wake();

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  Mail mail_;
  bool woken_ = false;
};

}  // namespace paceline
