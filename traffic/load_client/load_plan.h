// LoadPlan is what the client is asked to do; its parts run together.
#pragma once

#include <cstdint>
#include <string>

namespace paceline::traffic {

struct LoadPlan {
  uint16_t port = 8080;
  double rate = 20;  // the server's: ticks per second
  int64_t prompt_tokens = 8;
  bool any_tokens = false;  // not a paced server: only their number is checked

  // So many streams at a time: where one ends, the next begins.
  int64_t streams = 0;
  int64_t stream_tokens = 100;
  double stream_seconds = 0;  // no further ones after that; 0: one each
  double stream_spread = 1;   // seconds over which the first ones begin

  // An open loop: requests that come when they are due, whatever became of those before.
  int64_t requests = 0;
  double request_rate = 100;  // per second
  int64_t request_tokens = 20;
  bool streams_requests = false;
  bool may_refuse = false;  // a 429 is an answer like others

  // Connections that say GET /live once and then nothing.
  int64_t idle = 0;
  double idle_spread = 1;
  double idle_seconds = 0;  // to be held when all are open

  double grace = 60;  // seconds for what is open when the last part should have ended
  std::string json;   // a file for the figures
};

// Prints help or what is wrong, and ends the program, when there is nothing to do.
LoadPlan read_load_plan(int argc, char** argv);

}  // namespace paceline::traffic
