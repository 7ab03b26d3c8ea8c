// Channel brings events from the engine's thread to those who asked.
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
  // `listener`, if there is one, is called by notify() on the engine's thread in place of waking
  // who waits: for a reader that has a loop of its own and polls. It must not block.
  explicit Channel(std::function<void()> listener = nullptr);

  // Adds an event; who waits learns of it at the next notify().
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
