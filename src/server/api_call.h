// ApiCall is one request to a route on its way to its answer: its ids, its ticket, its log line.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "protocol/answer.h"
#include "protocol/api_error.h"
#include "server/http.h"
#include "server/server_context.h"

namespace paceline {

// The client's x-request-id when it is one (up to 128 letters, digits, "-", "_", "." and ":"), else
// a new one.
std::string request_id_of(const HttpRequest& request);

// An error as an answer of the API, with what its status asks for: Retry-After, WWW-Authenticate.
HttpResponse error_response(const ServerContext& context, const ApiError& error);

// What the log says of a client that went, as nginx has it.
constexpr int kClientClosedRequest = 499;

// What a request's line in the log says.
struct LogEntry {
  std::string request_id;
  std::string route;  // "GET /health"
  std::string peer;
  int status = 0;
  double seconds = 0;
  AnswerUsage usage;
  std::string error_code;
};
void write_log(const ServerContext& context, const LogEntry& entry);

// I/O thread.
class ApiCall {
 public:
  ApiCall(ServerContext& context, std::shared_ptr<HttpExchange> exchange,
          std::shared_ptr<void> held);

  ServerContext& context() { return context_; }
  HttpExchange& exchange() { return *exchange_; }
  bool is_open() const { return exchange_->is_open(); }

  // Each ends it and writes its line to the log.
  void respond(HttpResponse response);
  void respond_json(std::string body);
  void fail(const ApiError& error);
  // Of an answer in pieces that has ended, or whose client has gone: 499.
  void end_stream(int status, const std::string& error_code = "");

  // The head of an answer in pieces.
  void begin_events();

  // Its body has become something else: there is room for others.
  void release_body();

  // For the log line.
  void set_usage(const AnswerUsage& usage) { entry_.usage = usage; }

 private:
  void add_headers(HttpResponse& response) const;
  void log(int status);
  double seconds() const;

  ServerContext& context_;
  std::shared_ptr<HttpExchange> exchange_;
  std::shared_ptr<void> held_;
  LogEntry entry_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool is_logged_ = false;
};

}  // namespace paceline
