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
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { set_address(s, as_text(v)); }},
    {.name = "host",
     .placeholder = "HOST",
     .kind = OptionKind::text,
     .default_text = "127.0.0.1",
     .help = "Address or name to listen on; any but the loopback needs --api-key.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.host = as_text(v); }},
    {.name = "port",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {0, kMostPort},
     .default_text = "8080",
     .help = "Port to listen on; 0 picks a free one.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.port = as_integer(v); }},
    {.name = "unix-socket",
     .placeholder = "PATH",
     .kind = OptionKind::text,
     .help = "Listen on a Unix socket instead of host and port.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.unix_socket = as_text(v); }},
    {.name = "api-key",
     .placeholder = "KEY",
     .kind = OptionKind::texts,
     .help = "Key that requests must send; repeat for several. PACELINE_API_KEY hides it from ps.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s,
                 const OptionValue& v) { s.api_keys = std::get<std::vector<std::string>>(v); }},
    {.name = "insecure",
     .help = "Listen beyond the loopback without a key.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.insecure = as_flag(v); }},
    {.name = "allowed-host",
     .placeholder = "NAME",
     .kind = OptionKind::texts,
     .default_text = "the loopback's names",
     .help =
         "Host header to accept besides the loopback's when there is no key; repeat for several.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.allowed_hosts = std::get<std::vector<std::string>>(v);
         }},
    {.name = "allowed-origin",
     .placeholder = "ORIGIN",
     .kind = OptionKind::texts,
     .default_text = "none",
     .help =
         "Origin (https://host) whose pages may use the server from a browser (CORS); repeat for "
         "several.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.allowed_origins = std::get<std::vector<std::string>>(v);
         }},
    {.name = "tls-cert",
     .placeholder = "FILE",
     .kind = OptionKind::text,
     .help = "Certificate chain (PEM) for HTTPS.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.tls_certificate = as_text(v); }},
    {.name = "tls-key",
     .placeholder = "FILE",
     .kind = OptionKind::text,
     .help = "Key (PEM) of --tls-cert.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.tls_key = as_text(v); }},
    {.name = "max-requests",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 16777216},
     .default_text = "--max-num-seqs and --max-num-queued-reqs together",
     .help = "Requests accepted at once; more get 429.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.max_requests = as_integer(v); }},
    {.name = "max-choices",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, kMostChoices},
     .default_text = "16",
     .help = "Most answers to one prompt that a request may ask for (n, best_of).",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.max_choices = as_integer(v); }},
    {.name = "ignore-unknown-fields",
     .help = "Ignore and count unknown fields of requests instead of refusing them.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.ignore_unknown_fields = as_flag(v); }},
    {.name = "max-connections",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 1000000},
     .default_text = "16384",
     .help = "Connections open at once.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.max_connections = as_integer(v); }},
    {.name = "max-connections-per-address",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 1000000},
     .default_text = "1024",
     .help = "Connections from one address (in IPv6, one /64 network); the loopback has no limit.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s,
                 const OptionValue& v) { s.max_connections_per_address = as_integer(v); }},
    {.name = "max-body-size",
     .placeholder = "SIZE",
     .kind = OptionKind::bytes,
     .default_text = "8M",
     .help = "Longest body of a request, 1K to 1G; longer ones get 413.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.max_body_bytes = as_bytes(v); }},
    {.name = "max-header-size",
     .placeholder = "SIZE",
     .kind = OptionKind::bytes,
     .default_text = "16K",
     .help =
         "Longest header of a request, 1K to 1M; a line may take half of it; longer ones get 431.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.max_header_bytes = as_bytes(v); }},
    {.name = "max-response-size",
     .placeholder = "SIZE",
     .kind = OptionKind::bytes,
     .default_text = "64M",
     .help = "Largest response of logits or of prompts' log-probabilities; larger ones get 400.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.max_response_bytes = as_bytes(v); }},
    {.name = "header-timeout",
     .placeholder = "S",
     .kind = OptionKind::number,
     .limits = {0.001, kMostSeconds},
     .default_text = "10",
     .help = "Seconds for a request's header to arrive.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.header_timeout_s = std::get<double>(v); }},
    {.name = "body-timeout",
     .placeholder = "S",
     .kind = OptionKind::number,
     .limits = {0.001, kMostSeconds},
     .default_text = "30",
     .help = "Seconds for a request's body to arrive.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.body_timeout_s = std::get<double>(v); }},
    {.name = "keep-alive-timeout",
     .placeholder = "S",
     .kind = OptionKind::number,
     .limits = {0.001, kMostSeconds},
     .default_text = "75",
     .help = "Seconds that a connection may idle between requests.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s,
                 const OptionValue& v) { s.keep_alive_timeout_s = std::get<double>(v); }},
    {.name = "max-resident-memory",
     .placeholder = "SIZE",
     .kind = OptionKind::bytes,
     .default_text = "all of the cgroup or the machine",
     .help = "Most memory of the process, without mapped files; above 98 % of it requests get 503.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.max_resident_bytes = as_bytes(v); }},
    {.name = "queue-timeout",
     .placeholder = "S",
     .kind = OptionKind::number,
     .limits = {0, kMostSeconds},
     .default_text = "30",
     .help = "Seconds that a request may wait for its turn; then it gets 503.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.queue_timeout_s = std::get<double>(v); }},
    {.name = "request-timeout",
     .placeholder = "S",
     .kind = OptionKind::number,
     .limits = {0, kMostSeconds},
     .default_text = "600",
     .help = "Seconds that a request may take in all.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.request_timeout_s = std::get<double>(v); }},
    {.name = "drain-timeout",
     .placeholder = "S",
     .kind = OptionKind::number,
     .limits = {0, kMostSeconds},
     .default_text = "30",
     .help = "Seconds that running answers may take after SIGTERM.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.drain_timeout_s = std::get<double>(v); }},
    {.name = "drain-delay",
     .placeholder = "S",
     .kind = OptionKind::number,
     .limits = {0, kMostSeconds},
     .default_text = "0",
     .help = "Seconds after SIGTERM in which new requests are accepted while /ready answers 503.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.drain_delay_s = std::get<double>(v); }},
    {.name = "metrics-prefix",
     .placeholder = "NAME",
     .kind = OptionKind::text,
     .default_text = "paceline",
     .help = "Prefix of the metrics' names; vllm makes vLLM's dashboards work.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply = [](Settings& s, const OptionValue& v) { s.metrics_prefix = as_text(v); }},
    {.name = "log-format",
     .placeholder = "FORMAT",
     .kind = OptionKind::choice,
     .choices = "text json off",
     .default_text = "text",
     .help = "Format of the log, one line a request: text, json or off.",
     .group = OptionGroup::serving,
     .commands = kServing,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.log_json = as_text(v) == "json";
           s.log_requests = as_text(v) != "off";
         }},
};

}  // namespace

std::span<const OptionDef> serving_options() { return kServingOptions; }

}  // namespace paceline
