#include "server/api_server.h"

#include <fmt/format.h>

#include <utility>

#include "server/admission.h"
#include "server/server_context.h"
#include "server/server_errors.h"
#include "server/time_limits.h"
#include "server/worker_call.h"

namespace paceline {
namespace {

constexpr size_t kNumWorkers = 2;
constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::milliseconds kDrainLook{20};
constexpr std::chrono::milliseconds kLastWords{500};  // for errors to reach those who get them

// What the wire itself refuses.
std::string wire_error_body(int status, std::string_view message) {
  const auto code = [status]() -> std::string {
    switch (status) {
      case 408:
        return "request_timeout";
      case 413:
        return "body_too_large";
      case 414:
        return "uri_too_long";
      case 431:
        return "headers_too_large";
      case 503:
        return "too_many_connections";
      default:
        return "malformed_request";
    }
  }();
  return error_json({.status = status,
                     .message = std::string(message),
                     .type = status == 503 ? "server_error" : "invalid_request_error",
                     .param = {},
                     .code = code});
}

int64_t most_requests(const TextModel& model, const ServerOptions& options) {
  if (options.max_requests > 0) return options.max_requests;
  const EngineLimits& limits = model.engine.limits();
  return limits.max_num_seqs + limits.max_queued;
}

}  // namespace

struct ApiServer::State {
  State(const TextModel& model, StepHistory& steps, const ServerOptions& asked)
      : options(asked), http(make_http_server(options.address, options.http, handler())) {
    const int64_t limit = most_requests(model, options);
    context = std::unique_ptr<ServerContext>(
        new ServerContext{.model = model,
                          .options = options,
                          .http = *http,
                          .names = TokenNames(model.tokenizer),
                          .keys = ApiKeys(options.api_keys),
                          .link = EngineLink(model.engine, *http),
                          .tickets = Tickets(limit),
                          .metrics = {},
                          .steps = steps,
                          .workers = WorkerPool(kNumWorkers, static_cast<size_t>(limit))});
  }

  HttpHandler handler() {
    HttpHandler handler;
    handler.gate = [this](const HttpRequest& head) { return admit(*context, head); };
    handler.handle = [this](std::shared_ptr<HttpExchange> exchange, std::shared_ptr<void> held) {
      const Route* route = std::static_pointer_cast<Admitted>(held)->route;
      const auto call = std::make_shared<ApiCall>(*context, std::move(exchange), std::move(held));
      guarded(*call, [&] { route->handle(call); });
    };
    handler.error_body = wire_error_body;
    return handler;
  }

  void tick() {
    for (const auto& answer : context->link.answers()) answer->tick();
    enforce_time_limits(*context);
    http->after(kTick, [this] { tick(); });
  }

  void fail_all(const ApiError& error) {
    for (const auto& answer : context->link.answers()) answer->fail(error);
  }

  void begin_drain() {
    if (std::exchange(is_draining, true)) return;
    context->draining = true;
    http->after(options.drain_delay, [this] {
      context->refusing = true;
      http->close_listeners();
      drain_until = std::chrono::steady_clock::now() + options.drain_timeout;
      look_drained();
    });
  }

  void look_drained() {
    const bool is_empty = context->tickets.num_taken() == 0 && http->counters().connections == 0;
    if (is_empty) return http->stop();
    if (std::chrono::steady_clock::now() < drain_until) {
      return http->after(kDrainLook, [this] { look_drained(); });
    }
    fail_all(unavailable("draining", "the server is shutting down and can't wait any longer"));
    http->after(kLastWords, [this] { http->stop(); });
  }

  ServerOptions options;
  std::unique_ptr<HttpServer> http;
  std::unique_ptr<ServerContext> context;
  bool is_draining = false;
  std::chrono::steady_clock::time_point drain_until;
  std::string failure;
};

ApiServer::ApiServer(const TextModel& model, StepHistory& steps, const ServerOptions& options)
    : state_(std::make_unique<State>(model, steps, options)) {}

ApiServer::~ApiServer() = default;

std::string ApiServer::url() const {
  const HttpAddress& address = state_->options.address;
  if (!address.unix_socket.empty()) return "unix:" + address.unix_socket;
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", address.tls_certificate.empty() ? "http" : "https",
                     is_ipv6 ? "[" + address.host + "]" : address.host, state_->http->port());
}

std::string ApiServer::run(const EngineThread& engine_thread) {
  state_->context->engine_thread = &engine_thread;
  state_->http->post([state = state_.get()] { state->tick(); });
  state_->http->run();
  state_->context->engine_thread = nullptr;
  return state_->failure;
}

void ApiServer::drain() {
  state_->http->post([state = state_.get()] { state->begin_drain(); });
}

void ApiServer::engine_failed(const std::string& message) {
  state_->http->post([state = state_.get(), message] {
    state->failure = message;
    state->context->draining = state->context->refusing = true;
    state->fail_all({.status = 500,
                     .message = "the engine has failed",
                     .type = "server_error",
                     .param = {},
                     .code = "internal_error"});
    state->http->after(kLastWords, [state] { state->http->stop(); });
  });
}

}  // namespace paceline
