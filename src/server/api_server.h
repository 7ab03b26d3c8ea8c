// ApiServer answers HTTP requests with loaded models.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/served_model.h"
#include "server/server_options.h"

namespace paceline {

class ServerFrontend;

class ApiServer {
 public:
  // The frontend, and what models that are loaded already refer to, must outlive it.
  ApiServer(ServerFrontend& frontend, std::vector<ModelEntry> models, const ServerOptions& options);
  // Closes the frontend.
  ~ApiServer();

  // Starts the engines and serves the frontend's requests; false when the frontend is already
  // closed.
  bool open();
  // Blocks until a drain or an engine's failure, which fails every open request, has ended it, then
  // ends the engines. Returns the failure's message, else "".
  std::string wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
