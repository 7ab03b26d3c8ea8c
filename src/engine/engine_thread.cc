#include "engine/engine_thread.h"

#include <exception>
#include <utility>

#include "base/error.h"
#include "base/start_thread.h"
#include "base/time_source.h"

namespace paceline {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

}  // namespace

EngineThread::EngineThread(Engine& engine, AdmissionWindow window,
                           std::function<void(const std::string& message)> on_failure,
                           StepTurns* turns)
    : engine_(engine),
      window_(window),
      on_failure_(std::move(on_failure)),
      turns_(turns),
      thread_(start_thread([this] { run(); })) {}

EngineThread::~EngineThread() {
  stopping_.store(true);
  engine_.wake();
  thread_.join();
  engine_.end_all();  // a failed step leaves sequences
}

void EngineThread::run() {
  if (!on_failure_) return step_until_stopped();
  try {
    step_until_stopped();
  } catch (const std::exception& error) {
    engine_.set_observer(nullptr);  // it may be what failed
    on_failure_(error.what());
  }
}

void EngineThread::step_until_stopped() {
  constexpr std::chrono::milliseconds kForever = std::chrono::hours(1);
  while (!stopping_.load()) {
    engine_.wait_for_mail(kForever);
    if (stopping_.load()) break;
    if (window_.timeout.count() > 0 && window_.num_requests > 1) {
      engine_.wait_for_mail(window_.timeout, static_cast<size_t>(window_.num_requests));
    }
    do {
      busy_since_ns_.store(now_ns(), std::memory_order_relaxed);
    } while (step() && !stopping_.load() && !has_failed());
    busy_since_ns_.store(0, std::memory_order_relaxed);
    if (has_failed()) throw Error(ErrorCode::internal, engine_.lost_device());
  }
  engine_.end_all();
}

bool EngineThread::step() {
  return turns_ == nullptr ? engine_.step() : turns_->take([this] { return engine_.step(); });
}

// Without on_failure the thread goes on, and each request has the error of its own step.
bool EngineThread::has_failed() const { return on_failure_ && !engine_.lost_device().empty(); }

std::chrono::duration<double> EngineThread::age_of_last_step() const {
  const int64_t since = busy_since_ns_.load(std::memory_order_relaxed);
  if (since == 0) return std::chrono::duration<double>(0);
  return std::chrono::nanoseconds(now_ns() - since);
}

}  // namespace paceline
