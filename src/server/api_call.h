// ApiCall is one request to a route, until its response has been handed to its connection: its id,
// its permit, its log line.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/time_source.h"
#include "http/http.h"
#include "protocol/api_error.h"
#include "protocol/response.h"
#include "server/server_context.h"

namespace paceline {

struct AdmittedRequest;
struct Dialect;
struct Route;

// The client's x-request-id when it is one (up to 128 letters, digits, "-", "_", "." and ":"), else
// a new one.
std::string request_id_of(const HttpRequest& request);

// An error as a response in the form of an API (null: OpenAI's), with the headers of its status:
// Retry-After, WWW-Authenticate.
HttpResponse error_response(const ServerContext& context, const Dialect* dialect,
                            const ApiError& error, std::string_view request_id);

// Adds the headers that have the request's id.
void add_request_id(const Dialect* dialect, const std::string& id, HttpResponse& response);

// Whether its streams are events; else they are lines, each a JSON object.
bool has_event_stream(const Dialect& dialect);

// The log's status of a request whose client has disconnected, as in nginx.
constexpr int kClientClosedRequest = 499;

// One request's line in the log.
struct LogEntry {
  std::string request_id;
  std::string route;  // "GET /health"
  std::string peer;
  int status = 0;
  double seconds = 0;
  ResponseUsage usage;
  std::string error_code;
};
void write_log(const ServerContext& context, const LogEntry& entry);
// Any thread. A line about what went wrong without ending a request.
void write_warning(LineWriter& log, std::string_view warning, bool as_json);

// I/O thread.
class ApiCall {
 public:
  ApiCall(ServerContext& context, std::shared_ptr<HttpExchange> exchange,
          std::shared_ptr<void> held);

  ServerContext& context() const { return context_; }
  // The model that answers it, once it is chosen (model_call.h).
  const ModelLease& model() const { return model_; }
  void set_model(ModelLease model) { model_ = std::move(model); }
  ServerMetrics& metrics() const { return model_->metrics; }
  HttpExchange& exchange() { return *exchange_; }
  const HttpExchange& exchange() const { return *exchange_; }
  const Route& route() const;
  bool is_open() const { return exchange_->is_open(); }

  // Each ends it, releases its permit and writes its line to the log. After begin_events() an error
  // is the stream's last event.
  void respond(HttpResponse response);
  void respond_json(std::string body);
  void fail(const ApiError& error);
  // Ends a streamed response; 499 when the client has disconnected.
  void end_stream(int status, const std::string& error_code = "");

  // Sends the head of a streamed response, unless it has been sent.
  void begin_events();

  // A call with this one's request, model and permit that goes on without its connection.
  std::shared_ptr<ApiCall> detach(std::function<void(const HttpResponse& answer)> on_answer);

  // hold_permit(false) lets others have its permit. hold_permit(true) takes one again if one is
  // free; else the request goes on without.
  void hold_permit(bool holds);
  // Its body has been parsed and freed.
  void release_body();
  // Reserves memory for a large response until it has been sent; false when there is none.
  bool reserve_response(int64_t num_bytes);

  // For the log line.
  void set_usage(const ResponseUsage& usage) { entry_.usage = usage; }

 private:
  void add_headers(HttpResponse& response) const;
  AdmittedRequest& admitted() const;
  // Its response is computed: releases the permit and writes the log line.
  void finish(int status);
  double seconds() const;

  ServerContext& context_;
  ModelLease model_;
  std::shared_ptr<HttpExchange> exchange_;
  std::shared_ptr<void> held_;
  LogEntry entry_;
  std::chrono::steady_clock::time_point begin_ = Clock::now();
  bool has_events_ = false;
  bool is_finished_ = false;
};

using CallPtr = std::shared_ptr<ApiCall>;

}  // namespace paceline
