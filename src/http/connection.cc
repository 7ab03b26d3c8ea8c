#if defined(__clang__)
// Clang 14 can't emit a coroutine with -fsanitize=function ("difference across sections").
#pragma clang attribute push(__attribute__((no_sanitize("function"))), apply_to = function)
#endif

#include "http/connection.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>

#include "base/time_source.h"

namespace paceline {
namespace {

constexpr std::chrono::milliseconds kLingerTime{1000};
constexpr size_t kMaxLingerBytes = 64 << 20;
constexpr uint64_t kMinBodyBytesPerSecond = 1024;
// A connection that always has more to read yields to the others after this many turns.
constexpr size_t kTurnsAtOnce = 16;
// A connection that takes a large answer as fast as it is sent yields after this many bytes.
constexpr size_t kSentAtOnce = 1 << 20;
constexpr size_t kKeptInputBytes = 4096;
constexpr std::chrono::milliseconds kHangupPoll{25};

}  // namespace

std::string_view HttpConnectionPool::date() {
  const std::time_t now = std::chrono::system_clock::to_time_t(WallClock::now());
  if (now != date_time_) {
    date_time_ = now;
    date_ = http_date(now);
  }
  return date_;
}

std::string HttpConnectionPool::error_body(const HttpRequest& head, int status,
                                           std::string_view message) const {
  return handler.error_body ? handler.error_body(head, status, message) : std::string(message);
}

void HttpConnectionPool::flush_soon(std::shared_ptr<HttpConnection> connection) {
  unflushed_.push_back(std::move(connection));
  if (unflushed_.size() == 1) asio::post(context, [this] { flush_all(); });
}

void HttpConnectionPool::flush_all() {
  flushing_.swap(unflushed_);
  for (const auto& connection : flushing_) connection->flush();
  flushing_.clear();
}

void HttpConnectionPool::shed_unsent() {
  while (num_unsent_bytes > static_cast<int64_t>(limits.max_unsent_bytes)) {
    const auto slowest = std::min_element(connections.begin(), connections.end(),
                                          [](const auto* one, const auto* other) {
                                            return one->unsent_since() < other->unsent_since();
                                          });
    const bool is_any =
        slowest != connections.end() && (*slowest)->unsent_since() != Clock::time_point::max();
    if (!is_any) return;
    ++num_shed;
    (*slowest)->shed();
  }
}

HttpConnection::HttpConnection(HttpConnectionPool& pool, OwnedDescriptor socket, TlsSession session,
                               HttpPeer peer, HttpAdmission admission)
    : pool_(pool),
      descriptor_(pool.context, socket.get()),
      socket_(socket.get(), std::move(session)),
      deadline_timer_(pool.context),
      poll_timer_(pool.context),
      peer_(std::move(peer)),
      admission_(admission) {
  socket.release();
}

HttpConnection::~HttpConnection() {
  if (exchange_) exchange_->detach();
}

void HttpConnection::start() {
  pool_.connections.insert(this);
  if (admission_ == HttpAdmission::rejected) {
    ++pool_.num_rejected;
  } else {
    ++pool_.num_connections;
    if (!peer_.is_loopback) ++pool_.connections_by_address[peer_.counted_as];
  }
  asio::co_spawn(
      pool_.context, [self = shared_from_this()] { return self->run(); }, asio::detached);
}

Awaitable<void> HttpConnection::run() {
  try {
    co_await serve();
    if (lingers_) co_await linger();
  } catch (...) {  // out of memory, or the handler's: closes this connection and no other
  }
  close();
}

Awaitable<void> HttpConnection::serve() {
  if (admission_ == HttpAdmission::rejected) {
    HttpResponse response{.status = 503, .headers = {{"Retry-After", "1"}}};
    response.body = pool_.error_body({}, 503, "too many connections are open");
    co_await refuse(std::move(response), false);
    co_return;
  }
  bool goes_on = co_await handshake();
  for (size_t turn = 1; goes_on; ++turn) {
    goes_on = co_await serve_request();
    if (turn % kTurnsAtOnce == 0) co_await yield();
  }
}

Awaitable<bool> HttpConnection::handshake() {
  set_deadline(pool_.limits.header_time);
  while (true) {
    const HttpSocket::Status status = socket_.handshake();
    if (status == HttpSocket::Status::done) co_return true;
    if (status == HttpSocket::Status::closed) co_return false;
    const Event event = co_await wait(status);
    if (event != Event::ready) co_return false;
  }
}

Awaitable<bool> HttpConnection::serve_request() {
  HttpRequestReader reader(pool_.limits);
  if (!co_await read_head(reader)) co_return false;
  HttpGate gate = pass_gate(reader);
  if (gate.refusal) {
    co_await refuse(std::move(*gate.refusal), reader.is_head());
    co_return false;
  }
  if (!co_await read_body(reader)) co_return false;
  co_return co_await respond(reader, std::move(gate.held));
}

Awaitable<bool> HttpConnection::read_head(HttpRequestReader& reader) {
  feed(reader);
  is_idle_ = !reader.has_begun();
  set_deadline(is_first_ || reader.has_begun() ? pool_.limits.header_time
                                               : pool_.limits.keep_alive_time);
  while (reader.state() == HttpRequestReader::State::head) {
    const Event event = co_await read_some(reader);
    if (event == Event::expired && reader.has_begun()) {
      co_return co_await refuse_malformed(reader, 408, "the header took too long to arrive");
    }
    if (event != Event::ready) co_return false;
    if (is_idle_ && !is_first_) set_deadline(pool_.limits.header_time);
    is_idle_ = false;
  }
  clear_deadline();
  if (reader.state() == HttpRequestReader::State::gate) co_return true;
  co_return co_await refuse_malformed(reader, reader.refusal().status(), reader.refusal().what());
}

HttpGate HttpConnection::pass_gate(HttpRequestReader& reader) {
  reader.request().peer = peer_.name;
  reader.request().is_loopback = peer_.is_loopback;
  ++pool_.num_requests;
  return pool_.handler.gate ? pool_.handler.gate(reader.request()) : HttpGate{};
}

Awaitable<bool> HttpConnection::read_body(HttpRequestReader& reader) {
  reader.accept_body();
  if (reader.state() == HttpRequestReader::State::done) co_return true;
  if (reader.framing().expects_continue && input_.empty()) {
    output_.append("HTTP/1.1 100 Continue\r\n\r\n");
    if (!co_await send_all()) co_return false;
  }
  feed(reader);
  const Clock::time_point start = Clock::now();
  for (size_t turn = 1; reader.state() == HttpRequestReader::State::body; ++turn) {
    const auto earned =
        std::chrono::milliseconds(reader.request().body.size() * 1000 / kMinBodyBytesPerSecond);
    set_deadline(start + std::min(pool_.limits.body_time, pool_.limits.body_grace + earned));
    const Event event = co_await read_some(reader);
    if (event == Event::expired) {
      co_return co_await refuse_malformed(reader, 408, "the body took too long to arrive");
    }
    if (event == Event::gone) co_return false;
    if (turn % kTurnsAtOnce == 0) co_await yield();
  }
  clear_deadline();
  if (reader.state() == HttpRequestReader::State::done) co_return true;
  co_return co_await refuse_malformed(reader, reader.refusal().status(), reader.refusal().what());
}

// Calls the handler, then waits until its response is sent or the client has gone.
Awaitable<bool> HttpConnection::respond(HttpRequestReader& reader, std::shared_ptr<void> held) {
  const HttpResponseTerms terms{.version_minor = reader.version_minor(),
                                .is_head = reader.is_head(),
                                .keep_alive = reader.framing().keep_alive};
  exchange_ = std::make_shared<WireExchange>(*this, std::move(reader.request()), terms, held);
  has_unread_input_ = false;
  call_handler(std::move(held));
  flush();
  while (!is_gone_ && !is_responded()) co_await watch();
  clear_deadline();

  const std::shared_ptr<WireExchange> exchange = std::exchange(exchange_, nullptr);
  if (is_gone_) {
    exchange->client_gone();
    co_return false;
  }
  exchange->detach();
  is_first_ = false;
  lingers_ = exchange->was_aborted() || !exchange->keeps_alive() || pool_.is_draining;
  co_return !lingers_;
}

void HttpConnection::call_handler(std::shared_ptr<void> held) {
  is_in_handler_ = true;
  try {
    pool_.handler.handle(exchange_, std::move(held));
  } catch (...) {  // the handler answers its own errors; for any other there is no response
    exchange_->abort();
  }
  is_in_handler_ = false;
  if (exchange_.use_count() == 1) exchange_->abort();  // the handler has dropped it
}

// Waits for an event that may end the exchange: the response is sent, the client has gone, or the
// deadline has passed. Input is not read meanwhile; a FIN behind it can only be polled for.
Awaitable<void> HttpConnection::watch() {
  boost::system::error_code error;
  if (has_unread_input_) {
    poll_timer_.expires_after(kHangupPoll);
    co_await poll_timer_.async_wait(asio::redirect_error(kAwait, error));
  } else {
    co_await descriptor_.async_wait(HttpDescriptor::wait_read, asio::redirect_error(kAwait, error));
  }
  if (is_gone_ || is_responded()) co_return;
  if (is_closing_ || (is_expired_ && is_stalled())) {
    is_gone_ = true;
  } else if (has_unread_input_) {
    is_gone_ = socket_.has_hung_up();
  } else {
    const HttpSocket::Status status = socket_.peek();
    is_gone_ = status == HttpSocket::Status::closed;
    has_unread_input_ = status == HttpSocket::Status::done;
  }
}

Awaitable<bool> HttpConnection::refuse_malformed(HttpRequestReader& reader, int status,
                                                 std::string message) {
  ++pool_.num_malformed;
  HttpResponse response{.status = status};
  response.body = pool_.error_body(reader.request(), status, message);
  co_await refuse(std::move(response), reader.is_head());
  co_return false;
}

Awaitable<void> HttpConnection::refuse(HttpResponse response, bool is_head) {
  output_.append(http_response_head(response, {.keep_alive = false}, date()));
  if (!is_head && http_status_has_body(response.status)) output_.append(response.body);
  lingers_ = co_await send_all();
}

// Closing with unread input would reset the connection, and the client might lose the response.
Awaitable<void> HttpConnection::linger() {
  input_ = std::string();
  if (!socket_.finish_writing()) co_return;
  set_deadline(kLingerTime);
  for (size_t size = 0; size < kMaxLingerBytes;) {
    const HttpSocket::Outcome outcome = socket_.discard(pool_.scratch);
    if (outcome.status == HttpSocket::Status::closed) co_return;
    size += outcome.size;
    const Event event = co_await wait(HttpSocket::Status::wait_to_read);
    if (event != Event::ready) co_return;
  }
}

// Closes the socket and takes the connection out of every count.
void HttpConnection::close() noexcept {
  is_gone_ = true;
  try {
    if (exchange_) std::exchange(exchange_, nullptr)->client_gone();
  } catch (...) {  // of the callback; there is no one to report it to
  }
  pool_.num_unsent_bytes -= std::exchange(unsent_bytes_, 0);
  deadline_timer_.cancel();
  poll_timer_.cancel();
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  pool_.connections.erase(this);
  if (admission_ == HttpAdmission::rejected) {
    --pool_.num_rejected;
    return;
  }
  --pool_.num_connections;
  const auto count = pool_.connections_by_address.find(peer_.counted_as);
  if (!peer_.is_loopback && --count->second == 0) pool_.connections_by_address.erase(count);
}

void HttpConnection::feed(HttpRequestReader& reader) {
  input_.erase(0, reader.take(input_));
  if (input_.empty() && input_.capacity() > kKeptInputBytes) input_.shrink_to_fit();
}

Awaitable<HttpConnection::Event> HttpConnection::read_some(HttpRequestReader& reader) {
  while (true) {
    const HttpSocket::Outcome outcome = socket_.read(pool_.scratch);
    if (outcome.status == HttpSocket::Status::closed) co_return Event::gone;
    if (outcome.status == HttpSocket::Status::done) {
      const std::string_view bytes(pool_.scratch.data(), outcome.size);
      input_.append(bytes.substr(reader.take(bytes)));
      co_return Event::ready;
    }
    if (is_idle_ && pool_.is_draining) co_return Event::gone;
    const Event event = co_await wait(outcome.status);
    if (event != Event::ready) co_return event;
  }
}

Awaitable<HttpConnection::Event> HttpConnection::wait(HttpSocket::Status status) {
  if (is_closing_) co_return Event::gone;
  if (is_expired_) co_return Event::expired;
  boost::system::error_code error;
  const auto kind = status == HttpSocket::Status::wait_to_write ? HttpDescriptor::wait_write
                                                                : HttpDescriptor::wait_read;
  co_await descriptor_.async_wait(kind, asio::redirect_error(kAwait, error));
  if (is_closing_) co_return Event::gone;
  if (is_expired_) co_return Event::expired;
  co_return error&& error != asio::error::operation_aborted ? Event::gone : Event::ready;
}

Awaitable<void> HttpConnection::yield() { co_await asio::post(pool_.context, kAwait); }

void HttpConnection::wake() {
  boost::system::error_code ignored;
  descriptor_.cancel(ignored);
  poll_timer_.cancel();
}

void HttpConnection::close_if_idle() {
  if (is_idle_) wake();
}

void HttpConnection::close_now() {
  is_closing_ = true;
  wake();
}

void HttpConnection::flush_soon() {
  if (is_in_handler_ || std::exchange(is_flush_pending_, true)) return;
  pool_.flush_soon(shared_from_this());
}

void HttpConnection::flush() noexcept {
  is_flush_pending_ = false;
  if (is_gone_ || is_write_blocked_ || exchange_ == nullptr) return;
  try {
    const Sent sent = send_some();
    count_unsent();
    is_gone_ = sent == Sent::gone;
    if (sent == Sent::all) clear_deadline();
    if (is_gone_ || is_responded()) return wake();
    if (sent == Sent::all) return;
    if (sent == Sent::some || deadline_ == Clock::time_point::max()) start_stall_timer();
    flush_when_possible();
    pool_.shed_unsent();
  } catch (...) {
    is_gone_ = true;
    wake();
  }
}

void HttpConnection::flush_when_possible() {
  is_write_blocked_ = true;
  const auto wait = blocked_on_ == HttpSocket::Status::wait_to_read ? HttpDescriptor::wait_read
                                                                    : HttpDescriptor::wait_write;
  descriptor_.async_wait(wait, [self = shared_from_this()](const boost::system::error_code& error) {
    self->is_write_blocked_ = false;
    if (!error) return self->flush();
    // Woken by a deadline that the client has met.
    const bool is_over = self->is_gone_ || self->is_closing_ || self->exchange_ == nullptr;
    if (!is_over && !self->output_.empty()) self->flush_when_possible();
  });
}

HttpConnection::Sent HttpConnection::send_some() {
  size_t num_bytes = 0;
  while (!output_.empty()) {
    if (num_bytes >= kSentAtOnce) {
      blocked_on_ = HttpSocket::Status::wait_to_write;
      return Sent::some;
    }
    const HttpSocket::Outcome outcome = socket_.write(output_.unsent().substr(0, kSentAtOnce));
    if (outcome.status == HttpSocket::Status::closed) return Sent::gone;
    if (outcome.status != HttpSocket::Status::done) {
      blocked_on_ = outcome.status;
      return num_bytes > 0 ? Sent::some : Sent::nothing;
    }
    output_.drop(outcome.size);
    num_sent_ += static_cast<int64_t>(outcome.size);
    num_bytes += outcome.size;
  }
  return Sent::all;
}

Awaitable<bool> HttpConnection::send_all() {
  start_stall_timer();
  while (true) {
    const Sent sent = send_some();
    if (sent == Sent::gone) co_return false;
    if (sent == Sent::all) break;
    if (sent == Sent::some) start_stall_timer();
    const Event event = co_await wait(blocked_on_);
    if (event == Event::gone || (event == Event::expired && is_stalled())) co_return false;
  }
  clear_deadline();
  co_return true;
}

void HttpConnection::count_unsent() {
  const bool was_waiting = unsent_bytes_ > 0;
  const auto size = static_cast<int64_t>(output_.size());
  pool_.num_unsent_bytes += size - std::exchange(unsent_bytes_, size);
  if (was_waiting || size == 0) return;
  unsent_since_ = Clock::now();
  delivered_before_ = num_delivered();
}

Clock::time_point HttpConnection::unsent_since() const {
  return unsent_bytes_ > 0 ? unsent_since_ : Clock::time_point::max();
}

void HttpConnection::shed() {
  is_gone_ = true;
  pool_.num_unsent_bytes -= std::exchange(unsent_bytes_, 0);
  output_ = {};
  socket_.break_on_close();
  wake();
}

// When the client falls below the minimum rate, if it takes nothing more.
Clock::time_point HttpConnection::rate_deadline() const {
  if (unsent_bytes_ == 0) return Clock::time_point::max();
  const auto taken = static_cast<size_t>(std::max<int64_t>(num_delivered() - delivered_before_, 0));
  const std::chrono::milliseconds earned(taken * 1000 / pool_.limits.min_send_rate);
  return unsent_since_ + pool_.limits.write_stall + earned;
}

void HttpConnection::start_stall_timer() {
  delivered_at_start_ = num_delivered();
  stall_deadline_ = Clock::now() + pool_.limits.write_stall;
  set_deadline(std::min(stall_deadline_, rate_deadline()));
}

// The kernel accepts output in large steps, so a slow client looks like a stalled one from here.
// The bytes that its kernel has confirmed tell the two apart.
bool HttpConnection::is_stalled() {
  const Clock::time_point now = Clock::now();
  const bool takes_some = num_delivered() > delivered_at_start_;
  if (takes_some && now < rate_deadline()) {
    start_stall_timer();
    return false;
  }
  const bool takes_nothing = !takes_some && now >= stall_deadline_;
  ++(takes_nothing ? pool_.num_stalled : pool_.num_slow);
  socket_.break_on_close();
  return true;
}

void HttpConnection::set_deadline(std::chrono::milliseconds from_now) {
  set_deadline(Clock::now() + from_now);
}

// A timer that rings early enough is left alone: a deadline moves far more often than it passes.
void HttpConnection::set_deadline(Clock::time_point deadline) {
  deadline_ = deadline;
  is_expired_ = false;
  if (deadline < timer_at_) start_timer(deadline);
}

void HttpConnection::start_timer(Clock::time_point when) {
  timer_at_ = when;
  deadline_timer_.expires_at(when);
  deadline_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->is_gone_) return;
    self->timer_at_ = Clock::time_point::max();
    if (self->deadline_ == Clock::time_point::max()) return;
    if (Clock::now() < self->deadline_) return self->start_timer(self->deadline_);
    self->is_expired_ = true;
    self->deadline_ = Clock::time_point::max();
    self->wake();
  });
}

}  // namespace paceline

#if defined(__clang__)
#pragma clang attribute pop
#endif
