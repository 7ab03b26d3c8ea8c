#include "traffic/paced_server/server_arguments.h"

#include "traffic/arguments.h"

namespace paceline::traffic {
namespace {

void add_model_options(Arguments& options, PacedModelOptions& model) {
  PaceOptions& pace = model.pace;
  options.add("--model", model.directory, "Directory with the tokenizer.");
  options.add("--rate", pace.rate, "Tokens per second of each stream; all in one step.",
              kAboveZero);
  options.add("--prefill-rate", pace.prefill_rate, "Prompt tokens per second.", kAboveZero);
  options.add("--stall-after", pace.stall_after, "Step after which the next one hangs; -1: none.",
              -1);
  options.add("--stall-seconds", pace.stall_seconds, "How long it hangs.");
  options.add("--num-blocks", model.num_blocks,
              "Blocks of the cache; few of them force preemptions.");
  options.add("--block-size", model.block_size, "Tokens per block.");
  options.add("--max-model-len", model.max_model_len, "Prompt and output together.");
  options.add("--max-num-seqs", model.max_num_seqs, "Sequences computed at once.");
  options.add("--max-num-batched-tokens", model.max_batched_tokens, "Rows of one step.");
  options.add("--num-drafted", model.num_drafted,
              "Tokens of each step's draft, a fifth of them wrong; 0: none.");
  options.add("--max-num-queued-reqs", model.max_queued, "Requests that wait.");
}

void add_serving_options(Arguments& options, ServerOptions& server) {
  options.add("--port", server.address.port, "Port to listen on; 0 is any free one.");
  options.add("--unix-socket", server.address.unix_socket, "Listen there instead.");
  options.add("--tls-cert", server.address.tls_certificate, "Certificate chain (PEM).");
  options.add("--tls-key", server.address.tls_key, "Its key (PEM).");
  options.add("--api-key", server.api_keys, "Key that requests must bring.");
  options.add("--max-requests", server.max_requests, "Requests accepted at once.");
  options.add("--max-connections", server.http.max_connections, "Connections open at once.");
  options.add("--queue-timeout", server.queue_timeout, "Seconds of waiting.");
  options.add("--request-timeout", server.request_timeout, "Seconds of a request in all.");
  options.add("--drain-timeout", server.drain_timeout, "Seconds of grace after SIGTERM.");
  options.add("--drain-delay", server.drain_delay, "Seconds of new requests after SIGTERM.");
  options.add("--header-time", server.http.header_time, "Seconds that a header may take.");
  options.add("--body-time", server.http.body_time, "Seconds that a body may take.");
  options.add("--keep-alive-time", server.http.keep_alive_time, "Seconds between requests.");
  options.add("--ping-time", server.ping_time, "Seconds of silence in a stream.");
  options.add("--write-stall", server.http.write_stall, "Seconds without reading.");
}

}  // namespace

ServerArguments read_server_arguments(int argc, char** argv) {
  ServerArguments arguments;
  arguments.server.address.port = 0;
  Arguments options(
      "The HTTP server, scheduler, cache and tokenizer of paceline, on a model that speaks by rule "
      "at a set rate.");
  add_model_options(options, arguments.model);
  add_serving_options(options, arguments.server);
  options.add("--load-time", arguments.load_time,
              "Seconds that the model \"slow\" takes to load, when a request names it.");
  options.add("--fail-after", arguments.fail_after, "Step after which the engine fails; -1: none.",
              -1);
  options.add("--log-requests", arguments.logs_requests, "A line on standard error for each.");
  options.parse(argc, argv);
  return arguments;
}

}  // namespace paceline::traffic
