#include "traffic/paced_server/server_arguments.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace paceline::traffic {
namespace {

// An option of seconds, as a duration.
void add_seconds(CLI::App& app, const std::string& name, std::chrono::milliseconds& duration,
                 const std::string& help) {
  app.add_option_function<double>(
         name,
         [&duration](double seconds) {
           duration = std::chrono::milliseconds(static_cast<int64_t>(1e3 * seconds));
         },
         help)
      ->check(CLI::NonNegativeNumber);
}

void add_model_options(CLI::App& app, PacedModelOptions& model) {
  PaceOptions& pace = model.pace;
  app.add_option("-m,--model", model.directory, "Directory with the tokenizer.");
  app.add_option("--rate", pace.rate, "Tokens per second of each stream; all in one step.")
      ->check(CLI::PositiveNumber);
  app.add_option("--prefill-rate", pace.prefill_rate, "Prompt tokens per second.")
      ->check(CLI::PositiveNumber);
  app.add_option("--stall-after", pace.stall_after, "After so many steps the next one hangs.");
  app.add_option("--stall-seconds", pace.stall_seconds, "How long it hangs.");
  app.add_option("--num-blocks", model.num_blocks,
                 "Blocks of the cache; few of them force preemptions.");
  app.add_option("--block-size", model.block_size, "Tokens per block.");
  app.add_option("--max-model-len", model.max_model_len, "Prompt and output together.");
  app.add_option("--max-num-seqs", model.max_num_seqs, "Sequences computed at once.");
  app.add_option("--max-num-batched-tokens", model.max_batched_tokens, "Rows of one step.");
  app.add_option("--max-num-queued-reqs", model.max_queued, "Requests that wait.");
}

void add_serving_options(CLI::App& app, ServerOptions& server) {
  app.add_option("--port", server.address.port, "Port to listen on; 0 is any free one.");
  app.add_option("--unix-socket", server.address.unix_socket, "Listen there instead.");
  app.add_option("--tls-cert", server.address.tls_certificate, "Certificate chain (PEM).");
  app.add_option("--tls-key", server.address.tls_key, "Its key (PEM).");
  app.add_option("--api-key", server.api_keys, "Key that requests must bring.");
  app.add_option("--max-requests", server.max_requests, "Requests that may be here at once.");
  app.add_option("--max-connections", server.http.max_connections, "Open at once.");
  add_seconds(app, "--queue-timeout", server.queue_timeout, "Seconds of waiting.");
  add_seconds(app, "--request-timeout", server.request_timeout, "Seconds of a request in all.");
  add_seconds(app, "--drain-timeout", server.drain_timeout, "Seconds of grace after SIGTERM.");
  add_seconds(app, "--drain-delay", server.drain_delay, "Seconds of new requests after SIGTERM.");
  add_seconds(app, "--header-time", server.http.header_time, "Seconds that a header may take.");
  add_seconds(app, "--body-time", server.http.body_time, "Seconds that a body may take.");
  add_seconds(app, "--keep-alive-time", server.http.keep_alive_time, "Seconds between requests.");
  add_seconds(app, "--ping-time", server.ping_time, "Seconds of silence in a stream.");
  add_seconds(app, "--write-stall", server.http.write_stall, "Seconds without reading.");
}

}  // namespace

ServerArguments read_server_arguments(int argc, char** argv) {
  ServerArguments arguments;
  arguments.server.address.port = 0;
  arguments.server.model_names = {"paced"};
  CLI::App app(
      "The HTTP server, scheduler, cache and tokenizer of paceline, on a model that speaks by rule "
      "at a set rate.");
  app.option_defaults()->always_capture_default();
  add_model_options(app, arguments.model);
  add_serving_options(app, arguments.server);
  app.add_option("--fail-after", arguments.fail_after, "After so many steps the engine fails.");
  app.add_flag("--log-requests", arguments.logs_requests, "A line on standard error for each.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return arguments;
}

}  // namespace paceline::traffic
