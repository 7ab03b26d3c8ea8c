// ServerArguments are the paced server's options, named as those of `paceline serve`.
#pragma once

#include <chrono>

#include "server/server_options.h"
#include "traffic/paced_server/paced_model.h"

namespace paceline::traffic {

struct ServerArguments {
  PacedModelOptions model;
  ServerOptions server;
  std::chrono::milliseconds load_time{1000};  // of the second model, "slow", at its first request
  bool logs_requests = false;
  int64_t fail_after = -1;  // the engine fails after this many steps; negative: never
};

// Prints the help or an error and ends the program, when there is nothing to serve.
ServerArguments read_server_arguments(int argc, char** argv);

}  // namespace paceline::traffic
