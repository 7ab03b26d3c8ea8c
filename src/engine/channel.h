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

  // Moves all that has come into `out` (cleared first), waiting for at least one event or the
  // channel's end; false when it ended and nothing is left.
  bool wait(std::vector<TokenEvent>& out);
  // Likewise without waiting; false when there is nothing.
  bool poll(std::vector<TokenEvent>& out);

  // Nothing more will come.
  void end();

 private:
  const std::function<void()> listener_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<TokenEvent> events_;
  bool ended_ = false;
};

}  // namespace paceline
