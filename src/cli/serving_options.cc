// Options of the server: address, access, limits, shutdown.
#include <fmt/format.h>

#include <charconv>

#include "cli/option_groups.h"
#include "engine/request.h"
#include "paceline/error.h"

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
    throw Error(ErrorCode::invalid,
                fmt::format("--addr: found \"{}\", expected HOST:PORT, e.g. 127.0.0.1:8080", text));
  }
  settings.port = port;
}

constexpr OptionDef kServingOptions[] = {
    {.name = "addr",
     .placeholder = "HOST:PORT",
     .kind = OptionKind::text,
     .default_text = "127.0.0.1:8080",
     .help = "Address to listen on: --host and --port in one.",
     .excludes = "unix-socket",
     .apply = [](Settings& s, const OptionValue& v) { set_address(s, as_text(v)); }},
    {.name = "host",
     .placeholder = "HOST",
     .default_text = "127.0.0.1",
     .help = "Address or name to listen on; any but the loopback needs --api-key.",
     .excludes = "unix-socket",
     .to = kTo<&Settings::host>},
    {.name = "port",
     .placeholder = "N",
     .limits = {0, kMostPort},
     .default_text = "8080",
     .help = "Port to listen on; 0 picks a free one.",
     .excludes = "unix-socket",
     .to = kTo<&Settings::port>},
    {.name = "unix-socket",
     .placeholder = "PATH",
     .help = "Listen on a Unix socket instead of host and port.",
     .to = kTo<&Settings::unix_socket>},
    {.name = "api-key",
     .placeholder = "KEY",
     .help = "Key that requests must send; repeat for several. PACELINE_API_KEY hides it from ps.",
     .to = kTo<&Settings::api_keys>},
    {.name = "insecure",
     .help = "Listen beyond the loopback without a key.",
     .to = kTo<&Settings::insecure>},
    {.name = "allowed-host",
     .placeholder = "NAME",
     .default_text = "the loopback's names",
     .help =
         "Host header to accept besides the loopback's when there is no key; repeat for several.",
     .needs = "!api-key",
     .to = kTo<&Settings::allowed_hosts>},
    {.name = "allowed-origin",
     .placeholder = "ORIGIN",
     .default_text = "none",
     .help =
         "Origin (https://host) whose pages may use the server from a browser (CORS); repeat for "
         "several.",
     .to = kTo<&Settings::allowed_origins>},
    {.name = "tls-cert",
     .placeholder = "FILE",
     .help = "Certificate chain (PEM) for HTTPS.",
     .to = kTo<&Settings::tls_certificate>},
    {.name = "tls-key",
     .placeholder = "FILE",
     .help = "Key (PEM) of --tls-cert.",
     .to = kTo<&Settings::tls_key>},
    {.name = "max-requests",
     .placeholder = "N",
     .limits = {1, 16777216},
     .default_text = "--max-num-seqs and --max-num-queued-reqs together",
     .help = "Requests accepted at once; more get 429.",
     .to = kTo<&Settings::max_requests>},
    {.name = "max-choices",
     .placeholder = "N",
     .limits = {1, kMostChoices},
     .default_text = "16",
     .help = "Most answers to one prompt that a request may ask for (n, best_of).",
     .to = kTo<&Settings::max_choices>},
    {.name = "ignore-unknown-fields",
     .help = "Ignore and count unknown fields of requests instead of refusing them.",
     .to = kTo<&Settings::ignore_unknown_fields>},
    {.name = "keep-client-counters",
     .help = "Compute Claude Code's billing line and token countdowns, too.",
     .to = kTo<&Settings::keep_client_counters>},
    {.name = "seal-key-file",
     .placeholder = "FILE",
     .default_text = "a random key",
     .help = "Key of sealed values, 64 hexadecimal digits: other servers and later runs read them.",
     .to = kTo<&Settings::seal_key_file>},
    {.name = "compaction-prompt",
     .placeholder = "FILE",
     .default_text = "a prompt of our own",
     .help = "Prompt that makes the model summarise a conversation (/v1/responses/compact).",
     .to = kTo<&Settings::compaction_prompt_file>},
    {.name = "max-compaction-tokens",
     .placeholder = "N",
     .limits = {1, 16777216},
     .default_text = "4096",
     .help = "Most tokens of a summary, reasoning included, unless its request says how many.",
     .to = kTo<&Settings::max_compaction_tokens>},
    {.name = "max-stored-responses",
     .placeholder = "N",
     .limits = {0, 16777216},
     .default_text = "10000",
     .help = "Responses kept in memory (/v1/responses); beyond it the oldest leave.",
     .to = kTo<&Settings::max_stored_responses>},
    {.name = "max-stored-size",
     .placeholder = "SIZE",
     .default_text = "256M",
     .help = "Memory of the responses kept.",
     .to = kTo<&Settings::max_stored_bytes>},
    {.name = "stored-time",
     .placeholder = "S",
     .limits = {0, kMostSeconds},
     .default_text = "86400",
     .help = "Seconds for which a response is kept.",
     .to = kTo<&Settings::stored_time_s>},
    {.name = "reasoning-field",
     .placeholder = "NAME",
     .choices = "reasoning_content reasoning",
     .default_text = "reasoning_content",
     .help = "Member of messages and deltas that has the reasoning.",
     .to = kTo<&Settings::reasoning_field>},
    {.name = "max-connections",
     .placeholder = "N",
     .limits = {1, 1000000},
     .default_text = "16384",
     .help = "Connections open at once.",
     .to = kTo<&Settings::max_connections>},
    {.name = "max-connections-per-address",
     .placeholder = "N",
     .limits = {1, 1000000},
     .default_text = "1024",
     .help = "Connections from one address (in IPv6, one /64 network); the loopback has no limit.",
     .to = kTo<&Settings::max_connections_per_address>},
    {.name = "max-body-size",
     .placeholder = "SIZE",
     .default_text = "8M",
     .help = "Longest body of a request, 1K to 1G; longer ones get 413.",
     .to = kTo<&Settings::max_body_bytes>},
    {.name = "max-header-size",
     .placeholder = "SIZE",
     .default_text = "16K",
     .help =
         "Longest header of a request, 1K to 1M; a line may take half of it; longer ones get 431.",
     .to = kTo<&Settings::max_header_bytes>},
    {.name = "max-response-size",
     .placeholder = "SIZE",
     .default_text = "64M",
     .help = "Largest response of logits or of prompts' log-probabilities; larger ones get 400.",
     .to = kTo<&Settings::max_response_bytes>},
    {.name = "header-timeout",
     .placeholder = "S",
     .limits = {0.001, kMostSeconds},
     .default_text = "10",
     .help = "Seconds for a request's header to arrive.",
     .to = kTo<&Settings::header_timeout_s>},
    {.name = "body-timeout",
     .placeholder = "S",
     .limits = {0.001, kMostSeconds},
     .default_text = "30",
     .help = "Seconds for a request's body to arrive.",
     .to = kTo<&Settings::body_timeout_s>},
    {.name = "keep-alive-timeout",
     .placeholder = "S",
     .limits = {0.001, kMostSeconds},
     .default_text = "75",
     .help = "Seconds that a connection may idle between requests.",
     .to = kTo<&Settings::keep_alive_timeout_s>},
    {.name = "max-resident-memory",
     .placeholder = "SIZE",
     .default_text = "all of the cgroup or the machine",
     .help = "Most memory of the process, without mapped files; above 98 % of it requests get 503.",
     .to = kTo<&Settings::max_resident_bytes>},
    {.name = "queue-timeout",
     .placeholder = "S",
     .limits = {0, kMostSeconds},
     .default_text = "30",
     .help = "Seconds that a request may wait for its turn; then it gets 503.",
     .to = kTo<&Settings::queue_timeout_s>},
    {.name = "request-timeout",
     .placeholder = "S",
     .limits = {0, kMostSeconds},
     .default_text = "600",
     .help = "Seconds that a request may take in all.",
     .to = kTo<&Settings::request_timeout_s>},
    {.name = "drain-timeout",
     .placeholder = "S",
     .limits = {0, kMostSeconds},
     .default_text = "30",
     .help = "Seconds that running answers may take after SIGTERM.",
     .to = kTo<&Settings::drain_timeout_s>},
    {.name = "drain-delay",
     .placeholder = "S",
     .limits = {0, kMostSeconds},
     .default_text = "0",
     .help = "Seconds after SIGTERM in which new requests are accepted while /ready answers 503.",
     .to = kTo<&Settings::drain_delay_s>},
    {.name = "metrics-prefix",
     .placeholder = "NAME",
     .default_text = "paceline",
     .help = "Prefix of the metrics' names; vllm makes vLLM's dashboards work.",
     .to = kTo<&Settings::metrics_prefix>},
    {.name = "log-format",
     .placeholder = "FORMAT",
     .kind = OptionKind::choice,
     .choices = "text json off",
     .default_text = "text",
     .help = "Format of the log, one line a request: text, json or off.",
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.log_json = as_text(v) == "json";
           s.log_requests = as_text(v) != "off";
         }},
};

}  // namespace

std::vector<OptionDef> serving_options() {
  return section(OptionGroup::serving, kServing, kServingOptions);
}

}  // namespace paceline
