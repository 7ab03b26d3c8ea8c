// Options of the server: address, access, limits, shutdown.

#include "base/error.h"
#include "cli/option_groups.h"
#include "cli/words.h"
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
  if (!host.empty()) settings.server.address.host = host;
  if (!has_port) return;
  const auto port = parse_number<uint16_t>(std::string_view(text).substr(colon + 1));
  if (!port) {
    throw error_of(ErrorCode::invalid,
                   "--addr: found \"{}\", expected HOST:PORT, e.g. 127.0.0.1:8080", text);
  }
  settings.server.address.port = *port;
}

constexpr OptionDef kServingOptions[] = {
    option(
        "addr",
        {OptionKind::text, [](Settings& s, const OptionValue& v) { set_address(s, as_text(v)); }},
        "Address to listen on: --host and --port in one.",
        {.placeholder = "HOST:PORT", .default_text = "127.0.0.1:8080", .excludes = "unix-socket"}),
    option("host", kTo<&Settings::server, &ServerOptions::address, &HttpAddress::host>,
           "Address or name to listen on; any but the loopback needs --api-key.",
           {.placeholder = "HOST", .excludes = "unix-socket"}),
    option("port", kTo<&Settings::server, &ServerOptions::address, &HttpAddress::port>, "Port to listen on; 0 picks a free one.",
           {.limits = {0, kMostPort}, .excludes = "unix-socket"}),
    option("unix-socket", kTo<&Settings::server, &ServerOptions::address, &HttpAddress::unix_socket>,
           "Listen on a Unix socket instead of host and port.", {.placeholder = "PATH"}),
    option("api-key", kTo<&Settings::server, &ServerOptions::api_keys>,
           "Key that requests must send; repeat for several. PACELINE_API_KEY hides it from ps.",
           {.placeholder = "KEY"}),
    option("insecure", kTo<&Settings::insecure>, "Listen beyond the loopback without a key."),
    option("allowed-host", kTo<&Settings::server, &ServerOptions::allowed_hosts>,
           "Host header to accept besides the loopback's when there is no key; repeat for several.",
           {.placeholder = "NAME", .default_text = "the loopback's names", .needs = "!api-key"}),
    option("allowed-origin", kTo<&Settings::server, &ServerOptions::allowed_origins>,
           "Origin (https://host) whose pages may use the server from a browser (CORS); repeat for "
           "several.",
           {.placeholder = "ORIGIN", .default_text = "none"}),
    option("tls-cert", kTo<&Settings::server, &ServerOptions::address, &HttpAddress::tls_certificate>, "Certificate chain (PEM) for HTTPS.",
           {.placeholder = "FILE"}),
    option("tls-key", kTo<&Settings::server, &ServerOptions::address, &HttpAddress::tls_key>, "Key (PEM) of --tls-cert.", {.placeholder = "FILE"}),
    option("max-requests", kTo<&Settings::server, &ServerOptions::max_requests>, "Requests accepted at once; more get 429.",
           {.limits = {1, 16777216},
            .default_text = "--max-num-seqs and --max-num-queued-reqs together"}),
    option("max-choices", kAs<OptionKind::integer, &Settings::server, &ServerOptions::max_choices>,
           "Most answers to one prompt that a request may ask for (n, best_of).",
           {.limits = {1, kMostChoices}}),
    option("ignore-unknown-fields", kTo<&Settings::server, &ServerOptions::ignore_unknown_fields>,
           "Ignore and count unknown fields of requests instead of refusing them."),
    option("keep-client-counters", kTo<&Settings::server, &ServerOptions::keep_client_counters>,
           "Compute Claude Code's billing line and token countdowns, too."),
    option("seal-key-file", kTo<&Settings::seal_key_file>,
           "Key of sealed values, 64 hexadecimal digits: other servers and later runs read them.",
           {.placeholder = "FILE", .default_text = "a random key"}),
    option("compaction-prompt", kTo<&Settings::compaction_prompt_file>,
           "Prompt that makes the model summarise a conversation (/v1/responses/compact).",
           {.placeholder = "FILE", .default_text = "a prompt of our own"}),
    option("max-compaction-tokens", kTo<&Settings::server, &ServerOptions::max_compaction_tokens>,
           "Most tokens of a summary, reasoning included, unless its request says how many.",
           {.limits = {1, 16777216}}),
    option("max-stored-responses", kAs<OptionKind::integer, &Settings::server, &ServerOptions::stored_responses, &ResponseStoreLimits::max_responses>,
           "Responses kept in memory (/v1/responses); beyond it the oldest leave.",
           {.limits = {0, 16777216}}),
    option("max-stored-size", kTo<&Settings::server, &ServerOptions::stored_responses, &ResponseStoreLimits::max_bytes>, "Memory of the responses kept."),
    option("stored-time", kTo<&Settings::server, &ServerOptions::stored_responses, &ResponseStoreLimits::lifetime>, "Seconds for which a response is kept.",
           {.placeholder = "S", .limits = {0, kMostSeconds}}),
    option("reasoning-field", kTo<&Settings::server, &ServerOptions::reasoning_field>,
           "Member of messages and deltas that has the reasoning.",
           {.placeholder = "NAME",
            .choices = "reasoning_content reasoning"}),
    option("max-connections", kAs<OptionKind::integer, &Settings::server, &ServerOptions::http, &HttpLimits::max_connections>, "Connections open at once.",
           {.limits = {1, 1000000}}),
    option("max-connections-per-address", kAs<OptionKind::integer, &Settings::server, &ServerOptions::http, &HttpLimits::max_connections_per_address>,
           "Connections from one address (in IPv6, one /64 network); the loopback has no limit.",
           {.limits = {1, 1000000}}),
    option("max-body-size", kTo<&Settings::server, &ServerOptions::http, &HttpLimits::max_body_bytes>,
           "Longest body of a request, 1K to 1G; longer ones get 413."),
    option(
        "max-header-size", kTo<&Settings::server, &ServerOptions::http, &HttpLimits::max_header_bytes>,
        "Longest header of a request, 1K to 1M; a line may take half of it; longer ones get 431."),
    option("max-response-size", kAs<OptionKind::bytes, &Settings::server, &ServerOptions::max_response_bytes>,
           "Largest response of logits or of prompts' log-probabilities; larger ones get 400."),
    option("header-timeout", kTo<&Settings::server, &ServerOptions::http, &HttpLimits::header_time>,
           "Seconds for a request's header to arrive.",
           {.placeholder = "S", .limits = {0.001, kMostSeconds}}),
    option("body-timeout", kTo<&Settings::server, &ServerOptions::http, &HttpLimits::body_time>,
           "Seconds for a request's body to arrive.",
           {.placeholder = "S", .limits = {0.001, kMostSeconds}}),
    option("keep-alive-timeout", kTo<&Settings::server, &ServerOptions::http, &HttpLimits::keep_alive_time>,
           "Seconds that a connection may idle between requests.",
           {.placeholder = "S", .limits = {0.001, kMostSeconds}}),
    option("max-resident-memory", kAs<OptionKind::bytes, &Settings::server, &ServerOptions::max_resident_bytes>,
           "Most memory of the process, without mapped files; above 98 % of it requests get 503.",
           {.default_text = "all of the cgroup or the machine"}),
    option("queue-timeout", kTo<&Settings::server, &ServerOptions::queue_timeout>,
           "Seconds that a request may wait for its turn; then it gets 503.",
           {.placeholder = "S", .limits = {0, kMostSeconds}}),
    option("request-timeout", kTo<&Settings::server, &ServerOptions::request_timeout>,
           "Seconds that a request may take in all.",
           {.placeholder = "S", .limits = {0, kMostSeconds}}),
    option("drain-timeout", kTo<&Settings::server, &ServerOptions::drain_timeout>,
           "Seconds that running answers may take after SIGTERM.",
           {.placeholder = "S", .limits = {0, kMostSeconds}}),
    option("drain-delay", kTo<&Settings::server, &ServerOptions::drain_delay>,
           "Seconds after SIGTERM in which new requests are accepted while /ready answers 503.",
           {.placeholder = "S", .limits = {0, kMostSeconds}}),
    option("metrics-prefix", kTo<&Settings::server, &ServerOptions::metrics_prefix>,
           "Prefix of the metrics' names; vllm makes vLLM's dashboards work.",
           {.placeholder = "NAME"}),
    option("log-format",
           {OptionKind::choice,
            [](Settings& s, const OptionValue& v) {
              s.server.log_json = as_text(v) == "json";
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
