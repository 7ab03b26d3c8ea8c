// Connection is one keep-alive connection to the server: a request, its answer, the next request.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "traffic/load_client/answer_reader.h"
#include "traffic/load_client/poller.h"

namespace paceline::traffic {

// Receives the answer to a request.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void on_body(int status, std::string_view piece) = 0;
  virtual void on_end(int status) = 0;                     // the answer is complete
  virtual void on_failure(const std::string& reason) = 0;  // it will never be complete
};

class Connection : public Pollable {
 public:
  // Connects to 127.0.0.1:port at once, without waiting.
  Connection(Poller& poller, uint16_t port);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Only while is_idle(). The sink gets one on_end or on_failure, and lives until then.
  void send(std::string request, AnswerSink& sink);

  bool is_open() const { return fd_ >= 0; }
  bool is_idle() const { return is_open() && sink_ == nullptr; }
  bool is_connected() const { return is_connected_; }
  // Seconds from connect() to the end of the handshake.
  double connect_seconds() const { return connect_seconds_; }
  // Whether those seconds were recorded.
  bool is_counted() const { return is_counted_; }
  void set_counted() { is_counted_ = true; }

  void on_ready(uint32_t epoll_events) override;

 private:
  void write_out();
  void read_in(bool has_ended);
  void take(std::string_view bytes);
  void end_answer();
  void lose(const std::string& reason);

  int fd_ = -1;
  Clock::time_point began_ = Clock::now();
  double connect_seconds_ = 0;
  bool is_connected_ = false;
  bool is_counted_ = false;
  std::string unsent_;
  AnswerReader reader_;
  AnswerSink* sink_ = nullptr;
};

}  // namespace paceline::traffic
