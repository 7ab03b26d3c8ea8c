// LoadPlan has the client's options; its parts run concurrently.
#pragma once

#include <cstdint>
#include <string>

namespace paceline::traffic {

struct LoadPlan {
  uint16_t port = 8080;
  double rate = 20;  // the server's: ticks per second
  int64_t prompt_tokens = 8;
  int64_t first_prompt = 0;  // prompts are numbered; equal numbers are equal prompts
  bool any_tokens = false;   // for other servers: only the number of tokens is checked

  // The number of concurrent streams: when one ends, the next begins.
  int64_t streams = 0;
  int64_t stream_tokens = 100;
  double stream_seconds = 0;  // no new streams after that; 0: one each
  double stream_spread = 1;   // seconds over which the first streams begin

  // An open loop: requests are sent when they are due, independent of earlier ones.
  int64_t requests = 0;
  double request_rate = 100;  // per second
  int64_t request_tokens = 20;
  bool streams_requests = false;
  bool may_refuse = false;  // a 429 isn't an error

  // Connections that send GET /live once and then nothing.
  int64_t idle = 0;
  double idle_spread = 1;
  double idle_seconds = 0;  // to hold them once all are open

  double grace = 60;  // seconds for open requests after the planned end
  std::string json;   // a file for the figures
};

// Prints the help or an error and ends the program, when there is nothing to do.
LoadPlan read_load_plan(int argc, char** argv);

}  // namespace paceline::traffic
