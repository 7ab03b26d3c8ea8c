// Channel carries events from the engine's thread to the submitter of a request.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "engine/event.h"

namespace paceline {

// Any number of requests may share one. All members may be called from any thread.
class Channel {
 public:
  // notify() calls `listener`, if there is one, on the engine's thread: for a reader with a loop of
  // its own that polls. It must not block.
  explicit Channel(std::function<void()> listener = nullptr);

  // Adds an event; the next notify() wakes the reader.
  void push(TokenEvent&& event);
  void notify();

  // Moves all events into `out` (cleared first); waits for at least one.
  void wait(std::vector<TokenEvent>& out);
  // The same without waiting; false when there is none.
  bool poll(std::vector<TokenEvent>& out);

 private:
  const std::function<void()> listener_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<TokenEvent> events_;
};

}  // namespace paceline
