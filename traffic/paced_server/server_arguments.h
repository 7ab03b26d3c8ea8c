// ServerArguments are the paced server's options, named as those of `paceline serve`.
#pragma once

#include "server/server_options.h"
#include "traffic/paced_server/paced_model.h"

namespace paceline::traffic {

struct ServerArguments {
  PacedModelOptions model;
  ServerOptions server;
  bool logs_requests = false;
  int64_t fail_after = -1;  // the engine fails after this many steps; negative: never
};

// Prints the help or an error and ends the program, when there is nothing to serve.
ServerArguments read_server_arguments(int argc, char** argv);

}  // namespace paceline::traffic
