#include "traffic/load_client/load_plan.h"

#include "traffic/arguments.h"

namespace paceline::traffic {
namespace {

void add_parts(Arguments& options, LoadPlan& plan) {
  options.add("--streams", plan.streams, "Streams at a time.");
  options.add("--stream-tokens", plan.stream_tokens, "Tokens of each.");
  options.add("--stream-seconds", plan.stream_seconds,
              "So long each that ends is followed by another; 0: one each.");
  options.add("--stream-spread", plan.stream_spread, "Seconds over which they begin.");
  options.add("--requests", plan.requests, "Requests of an open loop.");
  options.add("--request-rate", plan.request_rate, "How many of them come per second.", kAboveZero);
  options.add("--request-tokens", plan.request_tokens, "Tokens of each.");
  options.add("--stream-requests", plan.streams_requests, "They are streams.");
  options.add("--may-refuse", plan.may_refuse, "A 429 is no error.");
  options.add("--idle", plan.idle, "Idle connections.");
  options.add("--idle-spread", plan.idle_spread, "Seconds over which they are opened.");
  options.add("--idle-seconds", plan.idle_seconds, "Seconds for which all are held.");
}

}  // namespace

LoadPlan read_load_plan(int argc, char** argv) {
  LoadPlan plan;
  Arguments options(
      "Load for paceline_paced_server: every token of every answer is checked, and how late it "
      "came.");
  options.add("--port", plan.port, "The server's, on 127.0.0.1.");
  options.add("--rate", plan.rate, "The server's --rate.", kAboveZero);
  options.add("--prompt-tokens", plan.prompt_tokens, "Length of prompts.", 1);
  options.add("--first-prompt", plan.first_prompt,
              "The first prompt's number; other numbers are other prompts.", 0);
  options.add("--any-tokens", plan.any_tokens,
              "The server is another one: only the number of tokens is checked.");
  add_parts(options, plan);
  options.add("--grace", plan.grace, "Seconds after which what is still open is an error.");
  options.add("--json", plan.json, "A file for the figures.");
  options.parse(argc, argv);
  return plan;
}

}  // namespace paceline::traffic
