// EngineThread steps an engine while there is work, and sleeps otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "engine/engine.h"
#include "engine/step_turns.h"

namespace paceline {

// An idle engine collects requests before its first step: until it has num_requests, or timeout.
struct AdmissionWindow {
  std::chrono::milliseconds timeout{0};
  int64_t num_requests = 1;
};

class EngineThread {
 public:
  // The engine must outlive it; from here on this thread alone steps it.
  // A step that throws outside any request stops the engine: `on_failure` is called on this thread
  // with the message, or without it the process ends. So does a step that loses the device; without
  // `on_failure` the requests of later steps fail with its message. With `turns` each step is one
  // of them.
  EngineThread(Engine& engine, AdmissionWindow window,
               std::function<void(const std::string& message)> on_failure = nullptr,
               StepTurns* turns = nullptr);
  // Ends what still runs, as cancelled.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Any thread. How long ago the last step ended; 0 while there is nothing to do.
  std::chrono::duration<double> age_of_last_step() const;

 private:
  void run();
  void step_until_stopped();
  bool step();
  bool has_failed() const;

  Engine& engine_;
  AdmissionWindow window_;
  std::function<void(const std::string& message)> on_failure_;
  StepTurns* turns_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> busy_since_ns_ = 0;  // of the steady clock; 0: idle
  std::thread thread_;
};

}  // namespace paceline
