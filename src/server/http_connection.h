// HttpConnection reads requests from a socket, hands them on, and sends their answers. Boost: for
// http_server.cc alone.
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
#include <vector>

#include "server/http.h"
#include "server/http_listener.h"
#include "server/http_request_reader.h"
#include "server/http_socket.h"
#include "server/http_wire_exchange.h"

namespace paceline {

namespace asio = boost::asio;
using HttpClock = std::chrono::steady_clock;
using HttpExecutor = asio::io_context::executor_type;
using HttpDescriptor = asio::posix::basic_stream_descriptor<HttpExecutor>;
using HttpTimer = asio::basic_waitable_timer<HttpClock, asio::wait_traits<HttpClock>, HttpExecutor>;
template <class T>
using Awaitable = asio::awaitable<T, HttpExecutor>;

inline constexpr asio::use_awaitable_t<HttpExecutor> kAwait;

class HttpConnection;

// What the connections of a server have in common. I/O thread, but for the counters.
struct HttpHub {
  HttpHub(const HttpLimits& the_limits, HttpHandler the_handler)
      : limits(the_limits), handler(std::move(the_handler)) {}

  // "Date", made once a second.
  std::string_view date();
  // Sends what connections have to send in the next turn of the loop, all in one.
  void flush_soon(std::shared_ptr<HttpConnection> connection);
  std::string error_body(int status, std::string_view message) const;

  HttpLimits limits;
  HttpHandler handler;
  bool is_draining = false;
  std::unordered_set<HttpConnection*> connections;
  std::unordered_map<std::string, size_t> connections_by_address;
  size_t num_turned_away = 0;  // connections over a limit that are being told so

  std::atomic<int64_t> num_connections{0};
  std::atomic<int64_t> num_accepted{0};
  std::atomic<int64_t> num_requests{0};
  std::atomic<int64_t> num_malformed{0};
  std::atomic<int64_t> num_stalled{0};

  std::array<char, 64 << 10> scratch;  // what is read, until it is taken apart

  // Goes first, and with it what still waits.
  asio::io_context context{1};

 private:
  void flush_all();

  std::vector<std::shared_ptr<HttpConnection>> unflushed_;
  std::vector<std::shared_ptr<HttpConnection>> flushing_;
  std::time_t date_time_ = 0;
  std::string date_;
};

// Whether a connection is served, or is one too many and told so.
enum class HttpAdmission { served, turned_away };

class HttpConnection final : public HttpWire, public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpHub& hub, OwnedDescriptor socket, TlsSession session, HttpPeer peer,
                 HttpAdmission admission);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  // Runs until the connection is over, and keeps it until then.
  void start();
  // No further request, unless one has come already.
  void finish_if_idle();
  // Over, wherever it is.
  void cut();
  // Sends what there is of the answer.
  void flush() noexcept;

  HttpOutput& output() override { return output_; }
  void flush_soon() override;
  bool is_draining() const override { return hub_.is_draining; }
  std::string_view date() override { return hub_.date(); }

 private:
  enum class Event { ready, expired, gone };
  enum class Sent { all, some, nothing, gone };

  Awaitable<void> run();
  Awaitable<void> serve();
  Awaitable<bool> serve_request();
  Awaitable<bool> shake_hands();
  Awaitable<bool> read_head(HttpRequestReader& reader);
  Awaitable<bool> read_body(HttpRequestReader& reader);
  Awaitable<bool> answer(HttpRequestReader& reader, std::shared_ptr<void> held);
  Awaitable<void> watch();
  Awaitable<bool> refuse_expired(HttpRequestReader& reader);
  Awaitable<bool> refuse_malformed(HttpRequestReader& reader, int status, std::string message);
  Awaitable<void> refuse(HttpResponse response, bool is_head);
  Awaitable<bool> send_all();
  Awaitable<void> linger();
  // Some bytes more for the reader.
  Awaitable<Event> read_some(HttpRequestReader& reader);
  Awaitable<Event> wait(HttpSocket::Status status);
  Awaitable<void> yield();

  void feed(HttpRequestReader& reader);
  HttpGate pass_gate(HttpRequestReader& reader);
  void hand_on(std::shared_ptr<void> held);
  bool is_answered() const { return exchange_->has_ended() && output_.empty(); }
  Sent send_some();
  void flush_when_possible();
  void expect_taking();
  bool is_stalled();
  int64_t num_taken() const { return num_sent_ - socket_.num_unconfirmed(); }
  void wake();
  void over() noexcept;

  void set_deadline(HttpClock::time_point deadline);
  void set_deadline(std::chrono::milliseconds from_now);
  void clear_deadline() { deadline_ = HttpClock::time_point::max(); }
  void wait_for_deadline(HttpClock::time_point when);

  HttpHub& hub_;
  HttpDescriptor descriptor_;
  HttpSocket socket_;
  HttpTimer deadline_timer_;
  HttpTimer look_again_;  // for the client's end, behind bytes that nobody reads yet
  HttpPeer peer_;
  HttpAdmission admission_;
  std::string input_;  // read, and not yet of any request
  HttpOutput output_;
  std::shared_ptr<WireExchange> exchange_;
  HttpClock::time_point deadline_ = HttpClock::time_point::max();
  HttpClock::time_point timer_at_ = HttpClock::time_point::max();
  HttpSocket::Status blocked_on_ = HttpSocket::Status::wait_to_write;

  int64_t num_sent_ = 0;   // bytes given to the kernel
  int64_t num_taken_ = 0;  // of them taken by the client, when the deadline was set

  bool is_first_ = true;         // no request has been answered
  bool is_idle_ = false;         // waits for the first byte of a request
  bool is_handing_on_ = false;   // the handler is at work, flush() follows
  bool is_unflushed_ = false;    // in the hub's list
  bool waits_to_flush_ = false;  // until the kernel takes more
  bool input_waits_ = false;     // in the kernel, while a request is being answered
  bool is_expired_ = false;      // the deadline has passed
  bool is_gone_ = false;         // nothing can be sent any more
  bool is_cut_ = false;
  bool lingers_ = false;  // until the client has read the last answer
};

}  // namespace paceline
