// CallGate lets calls of any thread in until it is closed; who closes it can wait until all have
// left.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace paceline {

class CallGate {
 public:
  // A call that has been let in, until its destruction.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Pass() {
      if (gate_ != nullptr) gate_->leave();
    }
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    friend class CallGate;
    explicit Pass(CallGate* gate) : gate_(gate) {}
    CallGate* gate_ = nullptr;
  };

  // Empty when the gate is closed. The gate must outlive the pass.
  Pass try_enter();
  // False when it is closed already.
  bool close();
  // Waits until every pass is gone.
  void wait_until_empty();

 private:
  void leave();

  std::mutex mutex_;
  std::condition_variable emptied_;
  int64_t num_inside_ = 0;
  bool is_closed_ = false;
};

}  // namespace paceline
