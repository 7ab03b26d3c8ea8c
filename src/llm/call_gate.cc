#include "llm/call_gate.h"

#include <utility>

namespace paceline {

CallGate::Pass CallGate::try_enter() {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return {};
  ++num_inside_;
  return Pass(this);
}

bool CallGate::close() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(is_closed_, true);
}

void CallGate::wait_until_empty() {
  std::unique_lock lock(mutex_);
  emptied_.wait(lock, [this] { return num_inside_ == 0; });
}

void CallGate::leave() {
  const std::lock_guard lock(mutex_);
  if (--num_inside_ == 0) emptied_.notify_all();
}

}  // namespace paceline
