#include "server/api_server.h"

#include <utility>

#include "server/admission.h"
#include "server/server_context.h"
#include "server/server_door.h"
#include "server/server_errors.h"
#include "server/time_limits.h"
#include "server/worker_call.h"

namespace paceline {
namespace {

constexpr size_t kNumWorkers = 2;
constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::milliseconds kDrainLook{20};
constexpr std::chrono::milliseconds kLastWords{500};  // for errors to reach those who get them

int64_t most_requests(const TextModel& model, const ServerOptions& options) {
  if (options.max_requests > 0) return options.max_requests;
  const EngineLimits& limits = model.engine.limits();
  return limits.max_num_seqs + limits.max_queued;
}

}  // namespace

struct ApiServer::State {
  State(ServerDoor& the_door, const TextModel& model, StepHistory& steps,
        const ServerOptions& asked)
      : options(asked), door(the_door), http(door.http()) {
    const int64_t limit = most_requests(model, options);
    context = std::unique_ptr<ServerContext>(
        new ServerContext{.model = model,
                          .options = options,
                          .http = http,
                          .names = TokenNames(model.tokenizer),
                          .keys = ApiKeys(options.api_keys),
                          .link = EngineLink(model.engine, http),
                          .tickets = Tickets(limit),
                          .rules = {.model_names = options.model_names,
                                    .terms = {.max_choices = options.max_choices}},
                          .body_bytes = BodyBytes(options.max_body_bytes_held),
                          .memory = MemoryWatch(options.max_resident_bytes),
                          .metrics = {},
                          .steps = steps,
                          .workers = WorkerPool(kNumWorkers, static_cast<size_t>(limit))});
    if (options.ignore_unknown_fields) {
      context->rules.terms.on_unknown_field =
          [count = &context->num_unknown_fields](const std::string&) { ++*count; };
    }
  }

  DoorKeeper keeper() {
    return {.gate = [this](const HttpRequest& head) { return admit(*context, head); },
            .handle =
                [this](std::shared_ptr<HttpExchange> exchange, std::shared_ptr<void> held) {
                  const Route* route = std::static_pointer_cast<Admitted>(held)->route;
                  const auto call =
                      std::make_shared<ApiCall>(*context, std::move(exchange), std::move(held));
                  guarded(*call, [&] { route->handle(call); });
                },
            .drain = [this] { begin_drain(); }};
  }

  void tick() {
    for (const auto& answer : context->link.answers()) answer->tick();
    enforce_time_limits(*context);
    context->memory.look();
    tell_manager();
    http.after(kTick, [this] { tick(); });
  }

  // Whoever watches hears nothing of an engine that hangs.
  void tell_manager() {
    if (context->is_engine_well()) context->manager.tell("WATCHDOG=1");
  }

  void fail_all(const ApiError& error) {
    for (const auto& answer : context->link.answers()) answer->fail(error);
  }

  void begin_drain() {
    if (std::exchange(is_draining, true)) return;
    context->draining = true;
    context->manager.tell("STOPPING=1");
    http.after(options.drain_delay, [this] {
      context->refusing = true;
      http.close_listeners();
      drain_until = std::chrono::steady_clock::now() + options.drain_timeout;
      look_drained();
    });
  }

  void look_drained() {
    const bool is_empty = context->tickets.num_taken() == 0 && http.counters().connections == 0;
    if (is_empty) return http.stop();
    if (std::chrono::steady_clock::now() < drain_until) {
      return http.after(kDrainLook, [this] { look_drained(); });
    }
    fail_all(unavailable("draining", "the server is shutting down and can't wait any longer"));
    http.after(kLastWords, [this] { http.stop(); });
  }

  ServerOptions options;
  ServerDoor& door;
  HttpServer& http;
  std::unique_ptr<ServerContext> context;
  bool is_draining = false;
  std::chrono::steady_clock::time_point drain_until;
  std::string failure;
};

ApiServer::ApiServer(ServerDoor& door, const TextModel& model, StepHistory& steps,
                     const ServerOptions& options)
    : state_(std::make_unique<State>(door, model, steps, options)) {}

ApiServer::~ApiServer() { state_->door.close(); }

bool ApiServer::open(const EngineThread& engine_thread) {
  if (!state_->door.open(state_->keeper())) return false;
  state_->http.post([state = state_.get(), &engine_thread] {
    state->context->engine_thread = &engine_thread;
    state->context->manager.tell("READY=1");
    state->tick();
  });
  return true;
}

std::string ApiServer::wait() {
  state_->door.wait();
  state_->context->engine_thread = nullptr;
  return state_->failure;
}

void ApiServer::engine_failed(const std::string& message) {
  state_->http.post([state = state_.get(), message] {
    state->failure = message;
    state->context->draining = state->context->refusing = true;
    state->fail_all({.status = 500,
                     .message = "the engine has failed",
                     .type = "server_error",
                     .param = {},
                     .code = "internal_error"});
    state->http.after(kLastWords, [state] { state->http.stop(); });
  });
}

}  // namespace paceline
