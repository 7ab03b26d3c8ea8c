#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "cli/command.h"
#include "cli/model_opening.h"
#include "cli/served_names.h"
#include "engine/engine_thread.h"
#include "engine/trace_writer.h"
#include "load/loaded_model.h"
#include "paceline/error.h"
#include "server/api_server.h"
#include "server/host_check.h"

namespace paceline {
namespace {

constexpr double kStepSlowdown = 2.5;
constexpr int kEngineFailed = 70;
constexpr int kSecondSignal = 130;

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(1e3 * seconds));
}

void check_exposure(const Settings& settings) {
  if (!settings.unix_socket.empty() || !settings.api_keys.empty() || settings.insecure) return;
  if (is_loopback_name(settings.host)) return;
  throw Error(ErrorCode::invalid,
              fmt::format("--host: {} is open to other machines; give --api-key, or --insecure if "
                          "everybody may use the model",
                          settings.host));
}

LoadOptions loading(const Settings& settings) {
  LoadOptions options = load_options(settings);
  options.max_step_slowdown = settings.max_step_slowdown.value_or(kStepSlowdown);
  return options;
}

ServerOptions serving(const Settings& settings, Session& session) {
  ServerOptions options{.address = {.host = settings.host,
                                    .port = static_cast<uint16_t>(settings.port),
                                    .unix_socket = settings.unix_socket,
                                    .tls_certificate = settings.tls_certificate,
                                    .tls_key = settings.tls_key},
                        .model_names = served_names(settings),
                        .api_keys = settings.api_keys,
                        .allowed_hosts = settings.allowed_hosts,
                        .queue_timeout = milliseconds(settings.queue_timeout_s),
                        .request_timeout = milliseconds(settings.request_timeout_s),
                        .drain_timeout = milliseconds(settings.drain_timeout_s),
                        .drain_delay = milliseconds(settings.drain_delay_s),
                        .max_requests = settings.max_requests,
                        .log_json = settings.log_json};
  options.http.max_connections = static_cast<size_t>(settings.max_connections);
  if (settings.log_requests && !settings.quiet) {
    options.log = [&session](std::string_view line) { session.say(line); };
  }
  return options;
}

}  // namespace

int run_serve(const Settings& settings, Session& session) {
  check_exposure(settings);
  const auto model = load_model(loading(settings));
  const TextModel text = text_model(*model);
  std::unique_ptr<TraceWriter> trace;
  if (!settings.load.trace_file.empty()) {
    trace = std::make_unique<TraceWriter>(settings.load.trace_file, model->directory.string(),
                                          *model->engine);
  }
  StepHistory steps(trace.get());
  model->engine->set_observer(&steps);
  ApiServer server(text, steps, serving(settings, session));
  std::string failure;
  {
    const EngineThread thread(
        *model->engine,
        {.timeout = std::chrono::milliseconds(settings.load.batch_timeout_ms),
         .num_requests = settings.load.batch_size},
        [&server](const std::string& message) { server.engine_failed(message); });
    std::atomic<int> num_signals = 0;
    const Interrupt::Handler handler(session.interrupt(), [&](int) {
      if (num_signals.fetch_add(1) > 0) _exit(kSecondSignal);
      server.drain();
    });
    session.say("listening on " + server.url());
    failure = server.run(thread);
  }
  model->engine->set_observer(nullptr);
  if (failure.empty()) return 0;
  session.say_error("the engine has failed: " + failure);
  return kEngineFailed;
}

}  // namespace paceline
