#include "traffic/load_client/load_plan.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace paceline::traffic {
namespace {

void add_parts(CLI::App& app, LoadPlan& plan) {
  app.add_option("--streams", plan.streams, "Streams at a time.");
  app.add_option("--stream-tokens", plan.stream_tokens, "Tokens of each.");
  app.add_option("--stream-seconds", plan.stream_seconds,
                 "So long each that ends is followed by another; 0: one each.");
  app.add_option("--stream-spread", plan.stream_spread, "Seconds over which they begin.");
  app.add_option("--requests", plan.requests, "Requests of an open loop.");
  app.add_option("--request-rate", plan.request_rate, "How many of them come per second.")
      ->check(CLI::PositiveNumber);
  app.add_option("--request-tokens", plan.request_tokens, "Tokens of each.");
  app.add_flag("--stream-requests", plan.streams_requests, "They are streams.");
  app.add_flag("--may-refuse", plan.may_refuse, "A 429 is no error.");
  app.add_option("--idle", plan.idle, "Idle connections.");
  app.add_option("--idle-spread", plan.idle_spread, "Seconds over which they are opened.");
  app.add_option("--idle-seconds", plan.idle_seconds, "Seconds for which all are held.");
}

}  // namespace

LoadPlan read_load_plan(int argc, char** argv) {
  LoadPlan plan;
  CLI::App app(
      "Load for paceline_paced_server: every token of every answer is checked, and how late it "
      "came.");
  app.option_defaults()->always_capture_default();
  app.add_option("--port", plan.port, "The server's, on 127.0.0.1.");
  app.add_option("--rate", plan.rate, "The server's --rate.")->check(CLI::PositiveNumber);
  app.add_option("--prompt-tokens", plan.prompt_tokens, "Length of prompts.")
      ->check(CLI::PositiveNumber);
  app.add_flag("--any-tokens", plan.any_tokens,
               "The server is another one: only the number of tokens is checked.");
  add_parts(app, plan);
  app.add_option("--grace", plan.grace, "Seconds after which what is still open is an error.");
  app.add_option("--json", plan.json, "A file for the figures.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return plan;
}

}  // namespace paceline::traffic
