// WireExchange is the HttpExchange of a connection: what is written to it becomes bytes of HTTP/1.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "server/http.h"
#include "server/http_answer_head.h"
#include "server/http_output.h"

namespace paceline {

// The connection as its exchange sees it.
class HttpWire {
 public:
  virtual HttpOutput& output() = 0;
  // There is something to send; once per turn of the loop is enough.
  virtual void flush_soon() = 0;
  virtual bool is_draining() const = 0;
  virtual std::string_view date() = 0;

 protected:
  ~HttpWire() = default;
};

// What of the request shapes its answer.
struct HttpAnswerTerms {
  int version_minor = 1;
  bool is_head = false;
  bool keep_alive = true;
};

class WireExchange final : public HttpExchange {
 public:
  // `held` goes when the exchange goes.
  WireExchange(HttpWire& wire, HttpRequest request, HttpAnswerTerms terms,
               std::shared_ptr<void> held);

  const HttpRequest& request() const override { return request_; }
  HttpRequest& request() override { return request_; }
  void respond(HttpResponse response) override;
  void begin(HttpResponse response) override;
  void write(std::string_view piece) override;
  void end() override;
  void abort() override;
  size_t buffered_bytes() const override;
  bool is_open() const override { return wire_ != nullptr && !has_ended(); }
  void on_close(std::function<void()> callback) override;

  // For the connection.
  bool has_ended() const { return state_ == State::ended || state_ == State::aborted; }
  bool was_aborted() const { return state_ == State::aborted; }
  bool keeps_alive() const { return terms_.keep_alive; }
  // Cuts it from its connection; what is written from now on is dropped.
  void detach();
  // The same, because the client is gone: calls the callback if the answer hasn't ended.
  void client_gone();

 private:
  enum class State { waiting, streaming, ended, aborted };

  void write_head(const HttpResponse& response, HttpBodyEnd body_end);
  void finish(State state);

  HttpWire* wire_;
  HttpRequest request_;
  HttpAnswerTerms terms_;
  std::shared_ptr<void> held_;
  State state_ = State::waiting;
  bool has_body_ = true;  // false: an answer to HEAD, or a status without one
  std::function<void()> on_close_;
};

}  // namespace paceline
