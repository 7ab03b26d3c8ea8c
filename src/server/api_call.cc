#include "server/api_call.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "base/json_writer.h"
#include "base/time_source.h"
#include "server/admission.h"
#include "server/cross_origin.h"
#include "server/detached_exchange.h"

namespace paceline {
namespace {

bool is_id_character(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 ||
         std::string_view("-_.:").find(byte) != std::string_view::npos;
}

double seconds_until_room(const ServerContext& context) {
  double longest = 1;
  for (const ModelLease& model : context.host.loaded()) {
    longest = std::max(longest, model->metrics.seconds_until_room(model->link));
  }
  return longest;
}

std::string now_text() {
  const auto now = WallClock::now();
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

}  // namespace

std::string request_id_of(const HttpRequest& request) {
  constexpr size_t kMaxBytes = 128;
  const std::string* asked = request.header("x-request-id");
  if (asked != nullptr && !asked->empty() && asked->size() <= kMaxBytes &&
      std::all_of(asked->begin(), asked->end(), is_id_character)) {
    return *asked;
  }
  return random_id("req_");
}

bool has_event_stream(const Dialect& dialect) { return dialect.stream_type == "text/event-stream"; }

HttpResponse error_response(const ServerContext& context, const Dialect* dialect,
                            const ApiError& error, std::string_view request_id) {
  constexpr int kUnauthorized = 401, kTooMany = 429, kUnsupported = 501, kUnavailable = 503;
  ErrorAnswer answer = answer_error(dialect, error, request_id);
  const int status = openai_kind(error.reason).status;
  HttpResponse response{.status = answer.status, .body = std::move(answer.body)};
  if (status == kUnauthorized) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  if (status == kTooMany || status == kUnavailable) {
    const double wait = seconds_until_room(context);
    response.headers.push_back({"Retry-After", fmt::format("{:.0f}", std::ceil(wait))});
    response.headers.push_back({"retry-after-ms", fmt::format("{:.0f}", 1e3 * wait)});
  }
  // Errors that a retry would meet again.
  if (error.reason == ErrorReason::numerical_error || status == kUnsupported)
    response.headers.push_back({"x-should-retry", "false"});
  if (context.refusing) response.close = true;
  return response;
}

void add_request_id(const Dialect* dialect, const std::string& id, HttpResponse& response) {
  response.headers.push_back({"x-request-id", id});
  if (dialect == nullptr || dialect->id_header.empty()) return;
  response.headers.push_back({std::string(dialect->id_header), id});
}

ApiCall::ApiCall(ServerContext& context, std::shared_ptr<HttpExchange> exchange,
                 std::shared_ptr<void> held)
    : context_(context),
      exchange_(std::move(exchange)),
      held_(std::move(held)),
      entry_{.request_id = request_id_of(exchange_->request()),
             .route = exchange_->request().method + " " + exchange_->request().path,
             .peer = exchange_->request().peer} {}

double ApiCall::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void ApiCall::add_headers(HttpResponse& response) const {
  add_request_id(route().dialect, entry_.request_id, response);
  add_origin_headers(exchange_->request(), context_.options.allowed_origins, response);
  response.headers.push_back({"openai-processing-ms", fmt::format("{:.0f}", 1e3 * seconds())});
}

void ApiCall::respond(HttpResponse response) {
  add_headers(response);
  const int status = response.status;
  exchange_->respond(std::move(response));
  finish(status);
}

const Route& ApiCall::route() const { return *admitted().route; }

AdmittedRequest& ApiCall::admitted() const {
  return *std::static_pointer_cast<AdmittedRequest>(held_);
}

void ApiCall::release_body() { admitted().body_bytes = nullptr; }

bool ApiCall::reserve_response(int64_t num_bytes) {
  constexpr int64_t kSmall = 1 << 20;
  if (num_bytes < kSmall) return true;
  std::shared_ptr<void> bytes = context_.response_bytes.acquire(num_bytes);
  if (bytes == nullptr) return false;
  admitted().response_bytes = context_.memory.trim_after(std::move(bytes));
  return true;
}

void ApiCall::respond_json(std::string body) { respond({.body = std::move(body)}); }

void ApiCall::fail(const ApiError& error) {
  const ErrorKind& kind = openai_kind(error.reason);
  entry_.error_code = kind.code;
  context_.errors.count(error);
  HttpResponse response = error_response(context_, route().dialect, error, entry_.request_id);
  if (!has_events_) return respond(std::move(response));
  exchange_->write(has_event_stream(*route().dialect)
                       ? fmt::format("event: error\ndata: {}\n\n", response.body)
                       : response.body + "\n");
  exchange_->end();
  finish(kind.status);
}

void ApiCall::begin_events() {
  if (std::exchange(has_events_, true)) return;
  const Dialect* dialect = route().dialect;
  HttpResponse response{.content_type = std::string(dialect->stream_type),
                        .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
  add_headers(response);
  exchange_->begin(std::move(response));
}

void ApiCall::end_stream(int status, const std::string& error_code) {
  entry_.error_code = error_code;
  finish(status);
}

std::shared_ptr<ApiCall> ApiCall::detach(std::function<void(const HttpResponse&)> on_answer) {
  HttpRequest request = exchange_->request();
  auto held = std::make_shared<AdmittedRequest>(
      AdmittedRequest{.route = &route(), .permit = std::move(admitted().permit)});
  auto call = std::make_shared<ApiCall>(
      context_, std::make_shared<DetachedExchange>(std::move(request), std::move(on_answer)),
      std::move(held));
  call->set_model(model_);
  return call;
}

void ApiCall::hold_permit(bool holds) {
  if (is_finished_) return;
  std::shared_ptr<void>& permit = admitted().permit;
  if (!holds) {
    permit = nullptr;
  } else if (permit == nullptr) {
    permit = context_.in_flight.acquire();
  }
}

void ApiCall::finish(int status) {
  if (std::exchange(is_finished_, true)) return;
  admitted().permit = nullptr;
  entry_.status = status;
  entry_.seconds = seconds();
  write_log(context_, entry_);
}

void write_warning(LineWriter& log, std::string_view warning, bool as_json) {
  if (!as_json) return log.write(fmt::format("warning: {}", warning));
  std::string line;
  JsonWriter writer(line);
  writer.begin_object().member("time", now_text()).member("warning", warning).end_object();
  log.write(line);
}

void write_log(const ServerContext& context, const LogEntry& entry) {
  if (context.options.log == nullptr) return;
  std::string line;
  if (context.options.log_json) {
    JsonWriter writer(line);
    writer.begin_object().member("time", now_text()).member("request_id", entry.request_id);
    writer.member("peer", entry.peer).member("request", entry.route);
    writer.member("status", entry.status).member("ms", std::round(1e6 * entry.seconds) / 1e3);
    writer.member("prompt_tokens", entry.usage.prompt_tokens);
    writer.member("completion_tokens", entry.usage.completion_tokens);
    if (!entry.error_code.empty()) writer.member("error", entry.error_code);
    writer.end_object();
  } else {
    line = fmt::format("{} {} {} {} {} {:.1f} ms", now_text(), entry.request_id, entry.peer,
                       json_quote(entry.route), entry.status, 1e3 * entry.seconds);
    if (entry.usage.prompt_tokens > 0) {
      line +=
          fmt::format(" {}+{} tokens", entry.usage.prompt_tokens, entry.usage.completion_tokens);
    }
    if (!entry.error_code.empty()) line += " " + entry.error_code;
  }
  context.options.log->write(line);
}

}  // namespace paceline
