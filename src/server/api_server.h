// ApiServer answers HTTP requests with a loaded model.
#pragma once

#include <memory>
#include <string>

#include "server/server_options.h"
#include "server/step_history.h"
#include "text/text_model.h"

namespace paceline {

class EngineThread;

// Order of life: model, history, server, engine's thread; the thread is the first to go.
class ApiServer {
 public:
  // Listens from here on, but answers only while run() runs. `steps` observes the engine. Throws
  // Error invalid as make_http_server does.
  ApiServer(const TextModel& model, StepHistory& steps, const ServerOptions& options);
  ~ApiServer();

  // "http://127.0.0.1:8080"
  std::string url() const;

  // Until a drain or a failure has ended it; what a failure said, else nothing.
  std::string run(const EngineThread& engine_thread);

  // Any thread. No further requests; those that run get their time, then run() returns.
  void drain();
  // Any thread. The engine is at its end: everybody gets an error, then run() returns.
  void engine_failed(const std::string& message);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
