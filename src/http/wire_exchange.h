// WireExchange is the HttpExchange of a connection: what is written to it becomes bytes of HTTP/1.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "http/http.h"
#include "http/response_head.h"

namespace paceline {

// The bytes of a connection that the kernel has not taken yet, in blocks that are freed as they are
// sent.
class HttpOutput {
 public:
  void append(std::string_view bytes);
  // Takes over a large body instead of copying it.
  void append_body(std::string body);

  // The bytes to send next: not empty unless the output is.
  std::string_view unsent() const;
  void drop(size_t num_bytes);
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::list<std::string> blocks_;
  size_t sent_ = 0;  // of the first block
  size_t size_ = 0;
};

// The connection as its exchange sees it.
class HttpWire {
 public:
  virtual HttpOutput& output() = 0;
  virtual HttpProgress progress() const = 0;
  // There is something to send; once per turn of the loop is enough.
  virtual void flush_soon() = 0;
  virtual bool is_draining() const = 0;
  virtual std::string_view date() = 0;

 protected:
  ~HttpWire() = default;
};

// The properties of a request that shape its response.
struct HttpResponseTerms {
  int version_minor = 1;
  bool is_head = false;
  bool keep_alive = true;
};

class WireExchange final : public HttpExchange {
 public:
  // `held` goes when the exchange goes.
  WireExchange(HttpWire& wire, HttpRequest request, HttpResponseTerms terms,
               std::shared_ptr<void> held);

  const HttpRequest& request() const override { return request_; }
  HttpRequest& request() override { return request_; }
  void respond(HttpResponse response) override;
  void begin(HttpResponse response) override;
  void write(std::string_view piece) override;
  void end() override;
  void abort() override;
  size_t buffered_bytes() const override;
  HttpProgress progress() const override;
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
  HttpResponseTerms terms_;
  std::shared_ptr<void> held_;
  State state_ = State::waiting;
  bool has_body_ = true;  // false: an answer to HEAD, or a status without one
  std::function<void()> on_close_;
};

}  // namespace paceline
