#include "server/api_server.h"

#include <malloc.h>

#include <utility>

#include "base/time_source.h"
#include "server/admission.h"
#include "server/server_context.h"
#include "server/server_frontend.h"
#include "server/time_limits.h"
#include "server/worker_call.h"

namespace paceline {
namespace {

constexpr size_t kNumWorkers = 2;
constexpr int64_t kLargeResponses = 4;  // of the largest size at once
constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::milliseconds kDrainLook{20};
constexpr std::chrono::milliseconds kLastErrorTime{500};  // to send the last errors

int64_t most_requests(const std::vector<ModelEntry>& models, const ServerOptions& options) {
  if (options.max_requests > 0) return options.max_requests;
  int64_t most = 0;
  for (const ModelEntry& model : models) most += model.max_requests;
  return most;
}

}  // namespace

struct ApiServer::State {
  State(ServerFrontend& the_frontend, std::vector<ModelEntry> models, const ServerOptions& asked)
      : options(asked), frontend(the_frontend), http(frontend.http()) {
    const int64_t limit = most_requests(models, options);
    context = std::unique_ptr<ServerContext>(new ServerContext{
        .options = options,
        .http = http,
        .keys = ApiKeys(options.api_keys),
        .in_flight = InFlightLimit(limit),
        .terms = {.max_choices = options.max_choices,
                  .keep_client_counters = options.keep_client_counters},
        .responses = ResponseStore(options.stored_responses),
        .body_bytes = BytesLimit(options.max_body_bytes_held),
        .response_bytes = BytesLimit(kLargeResponses * options.max_response_bytes),
        .memory = MemoryWatch(options.max_resident_bytes),
        .metrics = std::vector<ServerMetrics>(models.size()),
        .host = ModelHost(
            std::move(models),
            {.sleep_after = options.sleep_after, .accepts_any_name = options.accepts_any_model},
            [this](size_t index, ServedModel model) { return open(index, std::move(model)); }),
        .workers = WorkerPool(kNumWorkers, static_cast<size_t>(limit))});
    if (options.ignore_unknown_fields) {
      context->terms.on_unknown_field = [count = &context->num_unknown_fields](const std::string&) {
        ++*count;
      };
    }
  }

  std::shared_ptr<HostedModel> open(size_t index, ServedModel model) {
    RequestRules rules{.model_names = model.names,
                       .all_names = context->host.names(),
                       .accepts_any_name = options.accepts_any_model,
                       .terms = context->terms,
                       .max_response_bytes = options.max_response_bytes};
    auto hosted = std::make_shared<HostedModel>(std::move(model), std::move(rules), *context,
                                                context->metrics[index]);
    hosted->start([this](const std::string& message) { engine_failed(message); });
    return hosted;
  }

  FrontendHandlers handlers() {
    return {.gate = [this](const HttpRequest& head) { return admit(*context, head); },
            .handle =
                [this](std::shared_ptr<HttpExchange> exchange, std::shared_ptr<void> held) {
                  const Route* route = std::static_pointer_cast<AdmittedRequest>(held)->route;
                  const auto call =
                      std::make_shared<ApiCall>(*context, std::move(exchange), std::move(held));
                  guarded(*call, [&] { route->handle(call); });
                },
            .drain = [this] { begin_drain(); }};
  }

  void tick() {
    each_response([](PendingResponse& response) { response.tick(); });
    enforce_time_limits(*context);
    watch_memory();
    notify_manager();
    http.after(kTick, [this] { tick(); });
  }

  void watch_memory() {
    context->memory.look();
    if (!context->memory.is_trim_due()) return;
    if (context->workers.try_run([] { ::malloc_trim(0); })) context->memory.trim_has_begun();
  }

  // No watchdog ping while the engine hangs.
  void notify_manager() {
    if (context->host.is_well()) context->manager.notify("WATCHDOG=1");
  }

  void each_response(const std::function<void(PendingResponse& response)>& work) {
    for (const auto& model : context->host.loaded()) {
      for (const auto& response : model->link.responses()) work(*response);
    }
  }

  void fail_all(const ApiError& error) {
    context->host.fail_waiting(error.message);
    each_response([&error](PendingResponse& response) { response.fail(error); });
  }

  void begin_drain() {
    if (std::exchange(is_draining, true)) return;
    context->draining = true;
    context->manager.notify("STOPPING=1");
    http.after(options.drain_delay, [this] {
      context->refusing = true;
      http.close_listeners();
      drain_until = Clock::now() + options.drain_timeout;
      look_drained();
    });
  }

  void look_drained() {
    const bool is_empty =
        context->in_flight.num_in_flight() == 0 && http.counters().connections == 0;
    if (is_empty) return http.stop();
    if (Clock::now() < drain_until) {
      return http.after(kDrainLook, [this] { look_drained(); });
    }
    fail_all({ErrorReason::draining, "the server is shutting down and can't wait any longer"});
    http.after(kLastErrorTime, [this] { http.stop(); });
  }

  // An engine's thread.
  void engine_failed(const std::string& message) {
    http.post([this, message] {
      failure = message;
      context->draining = context->refusing = true;
      fail_all({ErrorReason::internal_error, "the engine has failed"});
      http.after(kLastErrorTime, [this] { http.stop(); });
    });
  }

  ServerOptions options;
  ServerFrontend& frontend;
  HttpServer& http;
  std::unique_ptr<ServerContext> context;
  bool is_draining = false;
  std::chrono::steady_clock::time_point drain_until;
  std::string failure;
};

ApiServer::ApiServer(ServerFrontend& frontend, std::vector<ModelEntry> models,
                     const ServerOptions& options)
    : state_(std::make_unique<State>(frontend, std::move(models), options)) {}

ApiServer::~ApiServer() { state_->frontend.close(); }

bool ApiServer::open() {
  State* const state = state_.get();
  state->context->host.start();
  if (!state->frontend.open(state->handlers())) return false;
  state->http.post([state] {
    state->context->manager.notify("READY=1");
    state->tick();
  });
  return true;
}

std::string ApiServer::wait() {
  state_->frontend.wait();
  state_->context->host.stop();
  return state_->failure;
}

}  // namespace paceline
