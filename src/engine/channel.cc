#include "engine/channel.h"

#include <utility>

namespace paceline {

Channel::Channel(std::function<void()> listener) : listener_(std::move(listener)) {
  constexpr size_t kUsual = 16;  // events of a reader that keeps up: no allocation for them
  events_.reserve(kUsual);
}

void Channel::push(TokenEvent&& event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

void Channel::notify() {
  came_.notify_all();
  if (listener_) listener_();
}

void Channel::wait(std::vector<TokenEvent>& out) {
  out.clear();
  std::unique_lock lock(mutex_);
  came_.wait(lock, [this] { return !events_.empty(); });
  std::swap(out, events_);
}

bool Channel::poll(std::vector<TokenEvent>& out) {
  out.clear();
  const std::lock_guard lock(mutex_);
  std::swap(out, events_);
  return !out.empty();
}

}  // namespace paceline
