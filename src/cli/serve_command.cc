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
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "cli/served_models.h"
#include "engine/engine.h"
#include "http/descriptor_limit.h"
#include "load/generation_config.h"
#include "load/loaded_model.h"
#include "server/cross_origin.h"
#include "server/host_check.h"
#include "server/memory_watch.h"
#include "server/serving_loop.h"

namespace paceline {
namespace {

void check_exposure(const Settings& settings) {
  const HttpAddress& address = settings.server.address;
  if (!address.unix_socket.empty() || !settings.server.api_keys.empty() || settings.insecure)
    return;
  if (is_loopback_name(address.host)) return;
  throw error_of(ErrorCode::invalid,
                 "--host: {} is open to other machines; give --api-key, or --insecure to "
                 "let everybody use the model",
                 address.host);
}

void check_tls(const HttpAddress& address) {
  const bool has_certificate = !address.tls_certificate.empty();
  if (has_certificate != address.tls_key.empty()) return;
  throw error_of(ErrorCode::invalid, "found {} alone, expected --tls-cert and --tls-key",
                 has_certificate ? "--tls-cert" : "--tls-key");
}

void check_runtime_lora(const Settings& settings) {
  if (!settings.allow_runtime_lora) return;
  if (settings.server.api_keys.empty()) {
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
  refuse_empty("--allowed-host", settings.server.allowed_hosts);
}

void check_sizes(const ServerOptions& server) {
  check_size("--max-body-size", server.http.max_body_bytes, 1 << 30);
  check_size("--max-response-size", static_cast<size_t>(server.max_response_bytes),
             size_t{1} << 40);
  check_size("--max-header-size", server.http.max_header_bytes, 1 << 20);
}

ServerOptions serving(const Settings& settings, LineWriter& log) {
  ServerOptions options = settings.server;
  check_sizes(options);
  options.http.max_header_line_bytes = options.http.max_header_bytes / 2;
  if (!settings.seal_key_file.empty()) options.seal = Seal::from_file(settings.seal_key_file);
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
  print_weight_notes(model.weights_cache, settings, session);
  const EngineLimits& limits = model.engine->limits();
  const std::string& device = model.machine->device_note;
  if (!device.empty()) session.print_note(device);
  print_cache_use({.context = limits.max_model_len,
                   .full_context = model.outline.max_position,
                   .bytes = model.kv_bytes + (model.draft ? model.draft->kv_bytes : 0),
                   .sequences = limits.max_num_seqs},
                  settings, session);
  if (!limits.has_head && !limits.classifies) {
    session.print_note("note: the model's files have no lm_head.weight: it makes embeddings only");
  }
  print_notes(generation_notes(model.generation), session);
  const std::string drafter = drafter_text(drafter_info(model));
  if (!drafter.empty()) session.print_note(drafter);
}

// The frontend's address is said once the options and the first model's configuration were found
// right. A signal ends the process at once: nothing is being answered.
void load_at_start(ServerFrontend& frontend, const Settings& settings, Session& session,
                   ServedModels& models) {
  const Interrupt::Handler handler(session.interrupt(), [&](int number) {
    const std::string& unix_socket = settings.server.address.unix_socket;
    if (!unix_socket.empty()) ::unlink(unix_socket.c_str());
    session.interrupt().end(number);
  });
  std::optional<ByteProgress> bar;
  bool is_said = false;
  models.load(
      [&](uint64_t done, uint64_t total) {
        if (!std::exchange(is_said, true)) {
          session.print_note("opened " + frontend.url() + ", loading the model");
        }
        if (!bar) bar.emplace(session);
        bar->update(done, total);
      },
      [&](const LoadedModel& model, const Settings& its) {
        bar.reset();
        describe_model(model, its, session);
      });
}

// A limit below what the loaded model takes would refuse every request.
void check_resident_memory(int64_t max_resident_bytes) {
  if (max_resident_bytes == 0) return;
  MemoryWatch watch(max_resident_bytes);
  watch.look();
  if (!watch.is_full()) return;
  throw error_of(ErrorCode::exhausted,
                 "--max-resident-memory: {}, but the process takes {} with the model loaded",
                 bytes_text(watch.limit()), bytes_text(watch.used()));
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
  check_tls(settings.server.address);
  check_runtime_lora(settings);
  check_allowed_origins(settings.server.allowed_origins);
  check_metrics_prefix(settings.server.metrics_prefix);
  check_names(settings);
  std::signal(SIGPIPE, SIG_IGN);  // a closed log must not end the server
  LineWriter log(STDERR_FILENO);
  const ServerOptions options = serving(settings, log);
  ServedModels models(settings, settings.quiet ? nullptr : &log);
  ServerFrontend frontend(options.address, options.http);
  const auto lack = lack_of_descriptors(options.http.max_connections);
  if (lack) session.print_note("note: " + *lack);
  load_at_start(frontend, settings, session, models);
  check_resident_memory(options.max_resident_bytes);
  DrainOnSignal drain(frontend);
  const Interrupt::Handler handler(session.interrupt(), [&drain](int) { drain(); });
  const std::string failure =
      serve_until_drained(frontend, models.take_entries(), options,
                          [&](std::string_view line) { session.print_note(line); });
  if (failure.empty()) {
    models.finish_trace();
    return 0;
  }
  log.write("paceline: the engine failed: " + failure);
  return kEngineFailedExit;
}

}  // namespace paceline
