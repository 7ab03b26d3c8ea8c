// Options of the server: address, access, limits, shutdown.

#include <charconv>

#include "base/error.h"
#include "cli/option_groups.h"
#include "engine/request.h"

namespace paceline {
namespace {

constexpr CommandSet kServing = set_of({CommandId::serve});
constexpr double kMostPort = 65535;
constexpr double kMostSeconds = 86400;
constexpr double kMostChoices = kMaxChoices;

// "HOST:PORT", "[::1]:PORT", or a part of it.
void set_address(Settings& settings, const std::string& text) {
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && text.find(']', colon) == std::string::npos;
  std::string host = has_port ? text.substr(0, colon) : text;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (!host.empty()) settings.host = host;
  if (!has_port) return;
  const char* end = text.data() + text.size();
  int64_t port = -1;
  const auto read = std::from_chars(text.data() + colon + 1, end, port);
  if (read.ec != std::errc() || read.ptr != end || port < 0 ||
      static_cast<double>(port) > kMostPort) {
    throw error_of(ErrorCode::invalid,
                   "--addr: found \"{}\", expected HOST:PORT, e.g. 127.0.0.1:8080", text);
  }
  settings.port = port;
}

constexpr OptionDef kServingOptions[] = {
    option(
        "addr",
        {OptionKind::text, [](Settings& s, const OptionValue& v) { set_address(s, as_text(v)); }},
        "Address to listen on: --host and --port in one.",
        {.placeholder = "HOST:PORT", .default_text = "127.0.0.1:8080", .excludes = "unix-socket"}),
    option("host", kTo<&Settings::host>,
           "Address or name to listen on; any but the loopback needs --api-key.",
           {.placeholder = "HOST", .default_text = "127.0.0.1", .excludes = "unix-socket"}),
    option("port", kTo<&Settings::port>, "Port to listen on; 0 picks a free one.",
           {.limits = {0, kMostPort}, .default_text = "8080", .excludes = "unix-socket"}),
    option("unix-socket", kTo<&Settings::unix_socket>,
           "Listen on a Unix socket instead of host and port.", {.placeholder = "PATH"}),
    option("api-key", kTo<&Settings::api_keys>,
           "Key that requests must send; repeat for several. PACELINE_API_KEY hides it from ps.",
           {.placeholder = "KEY"}),
    option("insecure", kTo<&Settings::insecure>, "Listen beyond the loopback without a key."),
    option("allowed-host", kTo<&Settings::allowed_hosts>,
           "Host header to accept besides the loopback's when there is no key; repeat for several.",
           {.placeholder = "NAME", .default_text = "the loopback's names", .needs = "!api-key"}),
    option("allowed-origin", kTo<&Settings::allowed_origins>,
           "Origin (https://host) whose pages may use the server from a browser (CORS); repeat for "
           "several.",
           {.placeholder = "ORIGIN", .default_text = "none"}),
    option("tls-cert", kTo<&Settings::tls_certificate>, "Certificate chain (PEM) for HTTPS.",
           {.placeholder = "FILE"}),
    option("tls-key", kTo<&Settings::tls_key>, "Key (PEM) of --tls-cert.", {.placeholder = "FILE"}),
    option("max-requests", kTo<&Settings::max_requests>, "Requests accepted at once; more get 429.",
           {.limits = {1, 16777216},
            .default_text = "--max-num-seqs and --max-num-queued-reqs together"}),
    option("max-choices", kTo<&Settings::max_choices>,
           "Most answers to one prompt that a request may ask for (n, best_of).",
           {.limits = {1, kMostChoices}, .default_text = "16"}),
    option("ignore-unknown-fields", kTo<&Settings::ignore_unknown_fields>,
           "Ignore and count unknown fields of requests instead of refusing them."),
    option("keep-client-counters", kTo<&Settings::keep_client_counters>,
           "Compute Claude Code's billing line and token countdowns, too."),
    option("seal-key-file", kTo<&Settings::seal_key_file>,
           "Key of sealed values, 64 hexadecimal digits: other servers and later runs read them.",
           {.placeholder = "FILE", .default_text = "a random key"}),
    option("compaction-prompt", kTo<&Settings::compaction_prompt_file>,
           "Prompt that makes the model summarise a conversation (/v1/responses/compact).",
           {.placeholder = "FILE", .default_text = "a prompt of our own"}),
    option("max-compaction-tokens", kTo<&Settings::max_compaction_tokens>,
           "Most tokens of a summary, reasoning included, unless its request says how many.",
           {.limits = {1, 16777216}, .default_text = "4096"}),
    option("max-stored-responses", kTo<&Settings::max_stored_responses>,
           "Responses kept in memory (/v1/responses); beyond it the oldest leave.",
           {.limits = {0, 16777216}, .default_text = "10000"}),
    option("max-stored-size", kTo<&Settings::max_stored_bytes>, "Memory of the responses kept.",
           {.default_text = "256M"}),
    option("stored-time", kTo<&Settings::stored_time_s>, "Seconds for which a response is kept.",
           {.placeholder = "S", .limits = {0, kMostSeconds}, .default_text = "86400"}),
    option("reasoning-field", kTo<&Settings::reasoning_field>,
           "Member of messages and deltas that has the reasoning.",
           {.placeholder = "NAME",
            .choices = "reasoning_content reasoning",
            .default_text = "reasoning_content"}),
    option("max-connections", kTo<&Settings::max_connections>, "Connections open at once.",
           {.limits = {1, 1000000}, .default_text = "16384"}),
    option("max-connections-per-address", kTo<&Settings::max_connections_per_address>,
           "Connections from one address (in IPv6, one /64 network); the loopback has no limit.",
           {.limits = {1, 1000000}, .default_text = "1024"}),
    option("max-body-size", kTo<&Settings::max_body_bytes>,
           "Longest body of a request, 1K to 1G; longer ones get 413.", {.default_text = "8M"}),
    option(
        "max-header-size", kTo<&Settings::max_header_bytes>,
        "Longest header of a request, 1K to 1M; a line may take half of it; longer ones get 431.",
        {.default_text = "16K"}),
    option("max-response-size", kTo<&Settings::max_response_bytes>,
           "Largest response of logits or of prompts' log-probabilities; larger ones get 400.",
           {.default_text = "64M"}),
    option("header-timeout", kTo<&Settings::header_timeout_s>,
           "Seconds for a request's header to arrive.",
           {.placeholder = "S", .limits = {0.001, kMostSeconds}, .default_text = "10"}),
    option("body-timeout", kTo<&Settings::body_timeout_s>,
           "Seconds for a request's body to arrive.",
           {.placeholder = "S", .limits = {0.001, kMostSeconds}, .default_text = "30"}),
    option("keep-alive-timeout", kTo<&Settings::keep_alive_timeout_s>,
           "Seconds that a connection may idle between requests.",
           {.placeholder = "S", .limits = {0.001, kMostSeconds}, .default_text = "75"}),
    option("max-resident-memory", kTo<&Settings::max_resident_bytes>,
           "Most memory of the process, without mapped files; above 98 % of it requests get 503.",
           {.default_text = "all of the cgroup or the machine"}),
    option("queue-timeout", kTo<&Settings::queue_timeout_s>,
           "Seconds that a request may wait for its turn; then it gets 503.",
           {.placeholder = "S", .limits = {0, kMostSeconds}, .default_text = "30"}),
    option("request-timeout", kTo<&Settings::request_timeout_s>,
           "Seconds that a request may take in all.",
           {.placeholder = "S", .limits = {0, kMostSeconds}, .default_text = "600"}),
    option("drain-timeout", kTo<&Settings::drain_timeout_s>,
           "Seconds that running answers may take after SIGTERM.",
           {.placeholder = "S", .limits = {0, kMostSeconds}, .default_text = "30"}),
    option("drain-delay", kTo<&Settings::drain_delay_s>,
           "Seconds after SIGTERM in which new requests are accepted while /ready answers 503.",
           {.placeholder = "S", .limits = {0, kMostSeconds}, .default_text = "0"}),
    option("metrics-prefix", kTo<&Settings::metrics_prefix>,
           "Prefix of the metrics' names; vllm makes vLLM's dashboards work.",
           {.placeholder = "NAME", .default_text = "paceline"}),
    option("log-format",
           {OptionKind::choice,
            [](Settings& s, const OptionValue& v) {
              s.log_json = as_text(v) == "json";
              s.log_requests = as_text(v) != "off";
            }},
           "Format of the log, one line a request: text, json or off.",
           {.placeholder = "FORMAT", .choices = "text json off", .default_text = "text"}),
};

}  // namespace

std::vector<OptionDef> serving_options() {
  return section(OptionGroup::serving, kServing, kServingOptions);
}

}  // namespace paceline
