// ApiServer answers HTTP requests with a loaded model.
#pragma once

#include <memory>
#include <string>

#include "server/server_options.h"
#include "server/step_history.h"
#include "text/text_model.h"

namespace paceline {

class EngineThread;
class ServerDoor;

// Order of life: door, model, history, server, engine's thread; the thread is the first to go.
class ApiServer {
 public:
  // `steps` observes the engine.
  ApiServer(ServerDoor& door, const TextModel& model, StepHistory& steps,
            const ServerOptions& options);
  // Closes the door.
  ~ApiServer();

  // From here on it answers what comes to the door; false when that was closed before.
  bool open(const EngineThread& engine_thread);
  // Until a drain or a failure has ended it; what a failure said, else nothing.
  std::string wait();

  // Any thread. The engine is at its end: everybody gets an error, then wait() returns.
  void engine_failed(const std::string& message);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
