#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/line_writer.h"
#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/model_opening.h"
#include "cli/served_models.h"
#include "engine/engine.h"
#include "http/descriptor_limit.h"
#include "load/generation_config.h"
#include "load/loaded_model.h"
#include "models/decoder.h"
#include "server/cross_origin.h"
#include "server/host_check.h"
#include "server/memory_watch.h"
#include "server/serving_loop.h"

namespace paceline {
namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(1e3 * seconds));
}

void check_exposure(const Settings& settings) {
  if (!settings.unix_socket.empty() || !settings.api_keys.empty() || settings.insecure) return;
  if (is_loopback_name(settings.host)) return;
  throw error_of(ErrorCode::invalid,
                 "--host: {} is open to other machines; give --api-key, or --insecure to "
                 "let everybody use the model",
                 settings.host);
}

void check_tls(const Settings& settings) {
  const bool has_certificate = !settings.tls_certificate.empty();
  if (has_certificate != settings.tls_key.empty()) return;
  throw error_of(ErrorCode::invalid, "found {} alone, expected --tls-cert and --tls-key",
                 has_certificate ? "--tls-cert" : "--tls-key");
}

void check_runtime_lora(const Settings& settings) {
  if (!settings.allow_runtime_lora) return;
  if (settings.api_keys.empty()) {
    throw Error(ErrorCode::invalid,
                "--allow-runtime-lora: clients may load adapters only with a key, give --api-key");
  }
  if (settings.lora_directory.empty() || !std::filesystem::is_directory(settings.lora_directory)) {
    throw error_of(ErrorCode::invalid,
                   "--lora-directory: found \"{}\", expected the directory of the "
                   "adapters that --allow-runtime-lora may load",
                   settings.lora_directory);
  }
}

void check_size(std::string_view option, size_t bytes, size_t most) {
  constexpr size_t kLeast = 1 << 10;
  if (bytes >= kLeast && bytes <= most) return;
  throw error_of(ErrorCode::invalid, "{}: {} bytes, expected {} to {}", option, bytes, kLeast,
                 most);
}

void check_metrics_prefix(const std::string& prefix) {
  const auto is_allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  const bool starts_well =
      !prefix.empty() && std::isdigit(static_cast<unsigned char>(prefix[0])) == 0;
  if (starts_well && std::all_of(prefix.begin(), prefix.end(), is_allowed)) return;
  throw error_of(ErrorCode::invalid,
                 "--metrics-prefix: found \"{}\", expected letters, digits and _, e.g. vllm",
                 prefix);
}

void check_names(const Settings& settings) {
  const auto refuse_empty = [](std::string_view option, const std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), "") == names.end()) return;
    throw error_of(ErrorCode::invalid, "{}: empty, expected a name", option);
  };
  refuse_empty("--served-model-name", settings.served_model_names);
  refuse_empty("--allowed-host", settings.allowed_hosts);
}

HttpLimits wire_limits(const Settings& settings) {
  check_size("--max-body-size", settings.max_body_bytes, 1 << 30);
  check_size("--max-response-size", settings.max_response_bytes, size_t{1} << 40);
  check_size("--max-header-size", settings.max_header_bytes, 1 << 20);
  return {.max_connections = static_cast<size_t>(settings.max_connections),
          .max_connections_per_address = static_cast<size_t>(settings.max_connections_per_address),
          .max_header_line_bytes = settings.max_header_bytes / 2,
          .max_header_bytes = settings.max_header_bytes,
          .max_body_bytes = settings.max_body_bytes,
          .header_time = milliseconds(settings.header_timeout_s),
          .body_time = milliseconds(settings.body_timeout_s),
          .keep_alive_time = milliseconds(settings.keep_alive_timeout_s)};
}

ServerOptions serving(const Settings& settings, LineWriter& log) {
  ServerOptions options{.address = {.host = settings.host,
                                    .port = static_cast<uint16_t>(settings.port),
                                    .unix_socket = settings.unix_socket,
                                    .tls_certificate = settings.tls_certificate,
                                    .tls_key = settings.tls_key},
                        .api_keys = settings.api_keys,
                        .allowed_hosts = settings.allowed_hosts,
                        .allowed_origins = settings.allowed_origins,
                        .reasoning_field = settings.reasoning_field,
                        .queue_timeout = milliseconds(settings.queue_timeout_s),
                        .request_timeout = milliseconds(settings.request_timeout_s),
                        .drain_timeout = milliseconds(settings.drain_timeout_s),
                        .drain_delay = milliseconds(settings.drain_delay_s),
                        .max_requests = settings.max_requests,
                        .max_choices = static_cast<uint64_t>(settings.max_choices),
                        .ignore_unknown_fields = settings.ignore_unknown_fields,
                        .keep_client_counters = settings.keep_client_counters,
                        .max_response_bytes = static_cast<int64_t>(settings.max_response_bytes),
                        .max_resident_bytes = static_cast<int64_t>(settings.max_resident_bytes),
                        .accepts_any_model = settings.unknown_model == "first",
                        .sleep_after = milliseconds(settings.sleep_idle_s),
                        .metrics_prefix = settings.metrics_prefix,
                        .log_json = settings.log_json};
  options.http = wire_limits(settings);
  options.stored_responses = {.max_responses = static_cast<size_t>(settings.max_stored_responses),
                              .max_bytes = settings.max_stored_bytes,
                              .lifetime = std::chrono::duration_cast<std::chrono::seconds>(
                                  std::chrono::duration<double>(settings.stored_time_s))};
  if (!settings.seal_key_file.empty()) options.seal = Seal::from_file(settings.seal_key_file);
  options.max_compaction_tokens = settings.max_compaction_tokens;
  if (!settings.compaction_prompt_file.empty()) {
    constexpr size_t kMostPromptBytes = 64 << 10;
    options.compaction_prompt = read_text_file(settings.compaction_prompt_file, kMostPromptBytes);
  }
  if (settings.log_requests && !settings.quiet) options.log = &log;
  if (!settings.quiet) options.warnings = &log;
  return options;
}

// Notes about what was loaded.
void describe_model(const LoadedModel& model, const Settings& settings, Session& session) {
  print_unread_weights(settings, session);
  print_weights_cache(model.weights_cache, settings, session);
  const EngineLimits& limits = model.engine->limits();
  print_cache_use({.context = limits.max_model_len,
                   .full_context = model.decoder->config().max_position,
                   .bytes = model.kv_bytes + (model.draft ? model.draft->kv_bytes : 0),
                   .sequences = limits.max_num_seqs},
                  settings, session);
  if (!limits.has_head && !limits.classifies) {
    session.print_note("note: the model's files have no lm_head.weight: it makes embeddings only");
  }
  print_generation_notes(generation_notes(model.generation), settings, session);
  const std::string drafter = drafter_text(drafter_info(model));
  if (!drafter.empty()) session.print_note(drafter);
}

// The frontend's address is said once the options and the first model's configuration were found
// right. A signal ends the process at once: nothing is being answered.
void load_at_start(ServerFrontend& frontend, const Settings& settings, Session& session,
                   ServedModels& models) {
  const Interrupt::Handler handler(session.interrupt(), [&](int number) {
    if (!settings.unix_socket.empty()) ::unlink(settings.unix_socket.c_str());
    session.interrupt().end(number);
  });
  std::optional<ByteProgress> bar;
  bool is_said = false;
  models.load(
      [&](uint64_t done, uint64_t total) {
        if (!std::exchange(is_said, true) && !settings.quiet) {
          session.print_note("opened " + frontend.url() + ", loading the model");
        }
        if (!bar) bar.emplace(settings, session);
        bar->update(done, total);
      },
      [&](const LoadedModel& model, const Settings& its) {
        bar.reset();
        if (!settings.quiet) describe_model(model, its, session);
      });
}

// A limit below what the loaded model takes would refuse every request.
void check_resident_memory(const Settings& settings) {
  if (settings.max_resident_bytes == 0) return;
  MemoryWatch watch(static_cast<int64_t>(settings.max_resident_bytes));
  watch.look();
  if (!watch.is_full()) return;
  throw error_of(ErrorCode::exhausted,
                 "--max-resident-memory: {}, but the process takes {} with the model loaded",
                 bytes_text(static_cast<double>(watch.limit())),
                 bytes_text(static_cast<double>(watch.used())));
}

// Large buffers are mapped alone, so that freeing one returns its memory at once. By itself glibc
// raises the threshold to the largest buffer freed so far (mallopt(3), M_MMAP_THRESHOLD), and
// malloc_trim() returns no memory at the end of another thread's heap.
void return_large_buffers() {
  constexpr int kLargeBytes = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kLargeBytes);
}

}  // namespace

int run_serve(const Settings& settings, Session& session) {
  return_large_buffers();
  check_exposure(settings);
  check_tls(settings);
  check_runtime_lora(settings);
  check_allowed_origins(settings.allowed_origins);
  check_metrics_prefix(settings.metrics_prefix);
  check_names(settings);
  std::signal(SIGPIPE, SIG_IGN);  // a closed log must not end the server
  LineWriter log(STDERR_FILENO);
  const ServerOptions options = serving(settings, log);
  ServedModels models(settings, settings.quiet ? nullptr : &log);
  ServerFrontend frontend(options.address, options.http);
  const auto lack = lack_of_descriptors(options.http.max_connections);
  if (lack && !settings.quiet) session.print_note("note: " + *lack);
  load_at_start(frontend, settings, session, models);
  check_resident_memory(settings);
  DrainOnSignal drain(frontend);
  const Interrupt::Handler handler(session.interrupt(), [&drain](int) { drain(); });
  const std::string failure =
      serve_until_drained(frontend, models.take_entries(), options, [&](std::string_view line) {
        if (!settings.quiet) session.print_note(line);
      });
  if (failure.empty()) {
    models.finish_trace();
    return 0;
  }
  log.write("paceline: the engine failed: " + failure);
  return kEngineFailedExit;
}

}  // namespace paceline
