// ApiServer answers HTTP requests with a loaded model.
#pragma once

#include <memory>
#include <string>

#include "server/server_options.h"
#include "server/step_history.h"
#include "text/text_model.h"

namespace paceline {

class EngineThread;
class ServerFrontend;

// Construct in this order: frontend, model, history, server, engine's thread; destroy in reverse.
class ApiServer {
 public:
  // `steps` observes the engine.
  ApiServer(ServerFrontend& frontend, const TextModel& model, StepHistory& steps,
            const ServerOptions& options);
  // Closes the frontend.
  ~ApiServer();

  // Starts to serve the frontend's requests; false when the frontend is already closed.
  bool open(const EngineThread& engine_thread);
  // Blocks until a drain or a failure has ended it. Returns the failure's message, else "".
  std::string wait();

  // Any thread. Fails every open request, then ends the server.
  void engine_failed(const std::string& message);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
