#include "server/server_frontend.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>
#include <variant>

#include "base/start_thread.h"
#include "protocol/api_error.h"
#include "server/page_files.h"
#include "server/route_table.h"

namespace paceline {
namespace {

ErrorReason wire_reason(int status) {
  using enum ErrorReason;
  constexpr std::pair<int, ErrorReason> kReasons[] = {{408, slow_request},
                                                      {413, body_too_large},
                                                      {414, uri_too_long},
                                                      {431, headers_too_large},
                                                      {503, too_many_connections}};
  for (const auto& [its_status, reason] : kReasons) {
    if (its_status == status) return reason;
  }
  return malformed_request;
}

// What the wire itself refuses, as the API of the request's route has it.
std::string wire_error_body(const HttpRequest& head, int status, std::string_view message) {
  const ApiError error{wire_reason(status), std::string(message)};
  return answer_error(dialect_at(head.path), error, {}).body;
}

HttpResponse without_model(const HttpRequest& head, const ApiError& error) {
  ErrorAnswer answer = answer_error(dialect_at(head.path), error, {});
  return {.status = answer.status, .body = std::move(answer.body)};
}

// While there is no model yet.
HttpResponse respond_while_loading(const HttpRequest& head) {
  std::string allow;
  const auto found = find_route(head.method, head.path, allow);
  if (const auto* error = std::get_if<ApiError>(&found)) {
    HttpResponse response = without_model(head, *error);
    if (!allow.empty()) response.headers.push_back({"Allow", allow});
    return response;
  }
  if (head.path == "/live") return {.body = R"({"status":"ok"})"};
  if (const PageFile* file = find_page_file(head.path)) return page_response(*file);
  HttpResponse response = without_model(head, {ErrorReason::loading, "the model is being loaded"});
  response.headers.push_back({"Retry-After", "1"});
  response.headers.push_back({"retry-after-ms", "500"});
  return response;
}

}  // namespace

struct ServerFrontend::State {
  State(HttpAddress asked, const HttpLimits& limits)
      : address(std::move(asked)),
        http(make_http_server(address, limits, handler())),
        thread(start_thread([this] {
          http->run();
          has_ended.store(true);
        })) {}

  HttpHandler handler() {
    HttpHandler handler;
    handler.gate = [this](const HttpRequest& head) -> HttpGate {
      if (handlers.gate) return handlers.gate(head);
      return {.refusal = respond_while_loading(head), .held = nullptr};
    };
    handler.handle = [this](std::shared_ptr<HttpExchange> exchange, std::shared_ptr<void> held) {
      handlers.handle(std::move(exchange), std::move(held));
    };
    handler.error_body = wire_error_body;
    return handler;
  }

  HttpAddress address;
  FrontendHandlers handlers;  // I/O thread
  std::unique_ptr<HttpServer> http;
  std::atomic<bool> has_ended = false;
  std::thread thread;
};

ServerFrontend::ServerFrontend(HttpAddress address, const HttpLimits& limits)
    : state_(std::make_unique<State>(std::move(address), limits)) {}

ServerFrontend::~ServerFrontend() { close(); }

std::string ServerFrontend::url() const {
  const HttpAddress& address = state_->address;
  if (!address.unix_socket.empty()) return "unix:" + address.unix_socket;
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", address.tls_certificate.empty() ? "http" : "https",
                     is_ipv6 ? "[" + address.host + "]" : address.host, state_->http->port());
}

HttpServer& ServerFrontend::http() { return *state_->http; }

bool ServerFrontend::open(FrontendHandlers handlers) {
  const auto opened = std::make_shared<std::promise<void>>();
  auto is_open = opened->get_future();
  state_->http->post([state = state_.get(), handlers = std::move(handlers), opened]() mutable {
    state->handlers = std::move(handlers);
    opened->set_value();
  });
  constexpr std::chrono::milliseconds kLook{10};  // a loop at its end takes no work
  while (is_open.wait_for(kLook) != std::future_status::ready) {
    if (state_->has_ended) return false;
  }
  return true;
}

void ServerFrontend::drain() {
  state_->http->post([state = state_.get()] {
    state->handlers.drain ? state->handlers.drain() : state->http->stop();
  });
}

void ServerFrontend::wait() {
  if (state_->thread.joinable()) state_->thread.join();
}

void ServerFrontend::close() {
  state_->http->stop();
  wait();
}

}  // namespace paceline
