// Serving a model from the open door to the last answer, as `paceline serve` and the server of the
// traffic tests do it alike: the order of life, what signals do, and the exit codes.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "engine/engine_thread.h"
#include "server/server_door.h"
#include "server/server_options.h"
#include "text/text_model.h"

namespace paceline {

constexpr int kEngineFailedExit = 70;
constexpr int kSecondSignalExit = 130;

// What a signal asks for: the first one drains, the second ends the process at once.
class DrainOnSignal {
 public:
  explicit DrainOnSignal(ServerDoor& door) : door_(door) {}

  // Any thread.
  void operator()();

 private:
  ServerDoor& door_;
  std::atomic<int> num_signals_ = 0;
};

struct ServedModel {
  const TextModel& text;
  StepObserver* observer = nullptr;  // is told the engine's steps too
  AdmissionWindow window = {};
};

// Runs the model's engine until the door has been drained or the engine fails; what the failure
// said, else nothing. `say` gets a line when everything is open.
std::string serve_until_drained(ServerDoor& door, const ServedModel& model,
                                const ServerOptions& options,
                                const std::function<void(std::string_view)>& say);

}  // namespace paceline
