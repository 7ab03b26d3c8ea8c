// HttpConnection is one client's connection: it reads requests, passes them to the handler and
// sends the responses. HttpConnectionPool is what the connections of a server share.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/time_source.h"
#include "http/http.h"
#include "http/listener.h"
#include "http/request_reader.h"
#include "http/socket.h"
#include "http/wire_exchange.h"

namespace paceline {

namespace asio = boost::asio;
using HttpExecutor = asio::io_context::executor_type;
using HttpDescriptor = asio::posix::basic_stream_descriptor<HttpExecutor>;
using HttpTimer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, HttpExecutor>;
template <class T>
using Awaitable = asio::awaitable<T, HttpExecutor>;

inline constexpr asio::use_awaitable_t<HttpExecutor> kAwait;

class HttpConnection;

// I/O thread, except for the counters.
struct HttpConnectionPool {
  HttpConnectionPool(const HttpLimits& the_limits, HttpHandler the_handler)
      : limits(the_limits), handler(std::move(the_handler)) {}

  // The value of "Date", formatted once a second.
  std::string_view date();
  // Sends the output of every connection that asked in this turn of the loop, in the next turn.
  void flush_soon(std::shared_ptr<HttpConnection> connection);
  std::string error_body(const HttpRequest& head, int status, std::string_view message) const;
  // Closes connections until the unsent bytes are within their limit.
  void shed_unsent();

  HttpLimits limits;
  HttpHandler handler;
  bool is_draining = false;
  std::unordered_set<HttpConnection*> connections;
  std::unordered_map<std::string, size_t> connections_by_address;
  size_t num_rejected = 0;  // open connections over a limit, which get a 503

  std::atomic<int64_t> num_connections{0};
  std::atomic<int64_t> num_accepted{0};
  std::atomic<int64_t> num_requests{0};
  std::atomic<int64_t> num_malformed{0};
  std::atomic<int64_t> num_stalled{0};
  std::atomic<int64_t> num_slow{0};
  std::atomic<int64_t> num_shed{0};
  std::atomic<int64_t> num_unsent_bytes{0};

  std::array<char, 64 << 10> scratch;  // input of any connection, until it is parsed

  // Destroyed first, with the handlers that still wait in it.
  asio::io_context context{1};

 private:
  void flush_all();

  std::vector<std::shared_ptr<HttpConnection>> unflushed_;
  std::vector<std::shared_ptr<HttpConnection>> flushing_;
  std::time_t date_time_ = -1;  // of date_
  std::string date_;
};

// A rejected connection gets 503 for its first request, whatever that is.
enum class HttpAdmission { served, rejected };

// One coroutine (run) reads requests and waits for their responses; flush() sends output, from
// whichever turn of the loop produced it. One timer serves every deadline.
class HttpConnection final : public HttpWire, public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpConnectionPool& pool, OwnedDescriptor socket, TlsSession session,
                 HttpPeer peer, HttpAdmission admission);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  // Starts the coroutine, which keeps the connection alive until it ends.
  void start();
  // Closes it if it waits for a request and none has begun to arrive.
  void close_if_idle();
  // Closes it in any state.
  void close_now();
  // Sends as much output as the kernel takes.
  void flush() noexcept;

  // When the output began to wait for the client; max() while none waits in an exchange.
  Clock::time_point unsent_since() const;
  // Closes it and drops its output.
  void shed();

  HttpOutput& output() override { return output_; }
  HttpProgress progress() const override {
    return {.written = num_sent_ + static_cast<int64_t>(output_.size()),
            .confirmed = num_delivered()};
  }
  void flush_soon() override;
  bool is_draining() const override { return pool_.is_draining; }
  std::string_view date() override { return pool_.date(); }

 private:
  enum class Event { ready, expired, gone };
  enum class Sent { all, some, nothing, gone };

  // Each Awaitable<bool> is false when the connection is to be closed.
  Awaitable<void> run();
  Awaitable<void> serve();
  Awaitable<bool> serve_request();
  Awaitable<bool> handshake();
  Awaitable<bool> read_head(HttpRequestReader& reader);
  HttpGate pass_gate(HttpRequestReader& reader);
  Awaitable<bool> read_body(HttpRequestReader& reader);
  Awaitable<bool> respond(HttpRequestReader& reader, std::shared_ptr<void> held);
  void call_handler(std::shared_ptr<void> held);
  Awaitable<void> watch();
  bool is_responded() const { return exchange_->has_ended() && output_.empty(); }
  Awaitable<bool> refuse_malformed(HttpRequestReader& reader, int status, std::string message);
  Awaitable<void> refuse(HttpResponse response, bool is_head);
  Awaitable<void> linger();
  void close() noexcept;

  // Input.
  void feed(HttpRequestReader& reader);
  Awaitable<Event> read_some(HttpRequestReader& reader);
  Awaitable<Event> wait(HttpSocket::Status status);
  Awaitable<void> yield();
  void wake();

  // Output.
  Awaitable<bool> send_all();
  Sent send_some();
  void flush_when_possible();
  void start_stall_timer();
  bool is_stalled();
  void count_unsent();
  Clock::time_point rate_deadline() const;
  int64_t num_delivered() const { return num_sent_ - socket_.num_unconfirmed(); }

  // The deadline.
  void set_deadline(Clock::time_point deadline);
  void set_deadline(std::chrono::milliseconds from_now);
  void clear_deadline() { deadline_ = Clock::time_point::max(); }
  void start_timer(Clock::time_point when);

  HttpConnectionPool& pool_;
  HttpDescriptor descriptor_;
  HttpSocket socket_;
  HttpTimer deadline_timer_;
  HttpTimer poll_timer_;  // polls for the client's FIN behind bytes that stay unread
  HttpPeer peer_;
  HttpAdmission admission_;
  std::string input_;  // read, but not parsed
  HttpOutput output_;
  std::shared_ptr<WireExchange> exchange_;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point timer_at_ = Clock::time_point::max();
  HttpSocket::Status blocked_on_ = HttpSocket::Status::wait_to_write;

  int64_t num_sent_ = 0;            // bytes given to the kernel
  int64_t delivered_at_start_ = 0;  // num_delivered() when the stall timer was started

  Clock::time_point stall_deadline_ = Clock::time_point::max();
  int64_t unsent_bytes_ = 0;  // as counted in the pool
  Clock::time_point unsent_since_ = Clock::time_point::max();
  int64_t delivered_before_ = 0;  // num_delivered() at unsent_since_

  bool is_first_ = true;           // no request has been answered yet
  bool is_idle_ = false;           // waits for the first byte of a request
  bool is_in_handler_ = false;     // flush() follows when the handler returns
  bool is_flush_pending_ = false;  // in the pool's list
  bool is_write_blocked_ = false;  // until the kernel takes more
  bool has_unread_input_ = false;  // in the kernel, while a response is pending
  bool is_expired_ = false;        // the deadline has passed
  bool is_gone_ = false;           // the client has gone, or can't be reached
  bool is_closing_ = false;        // close_now() was called
  bool lingers_ = false;           // until the client has read the last response
};

}  // namespace paceline
