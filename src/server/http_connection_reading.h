// How HttpConnection comes to a request, and how it ends. Boost: for http_server.cc alone.
#pragma once

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <utility>

#include "server/http_connection.h"

namespace paceline {

inline constexpr std::chrono::milliseconds kLingerTime{1000};
inline constexpr size_t kMaxLingerBytes = 64 << 20;
inline constexpr uint64_t kMinBodyBytesPerSecond = 1024;
// A connection that always has more to read lets the others come in between.
inline constexpr size_t kTurnsAtOnce = 16;
inline constexpr size_t kKeptInputBytes = 4096;

inline std::string_view HttpHub::date() {
  const std::time_t now = std::time(nullptr);
  if (now != date_time_) {
    date_time_ = now;
    date_ = http_date(now);
  }
  return date_;
}

inline std::string HttpHub::error_body(int status, std::string_view message) const {
  return handler.error_body ? handler.error_body(status, message) : std::string(message);
}

inline HttpConnection::HttpConnection(HttpHub& hub, OwnedDescriptor socket, TlsSession session,
                                      HttpPeer peer, HttpAdmission admission)
    : hub_(hub),
      descriptor_(hub.context, socket.get()),
      socket_(socket.get(), std::move(session)),
      deadline_timer_(hub.context),
      look_again_(hub.context),
      peer_(std::move(peer)),
      admission_(admission) {
  socket.release();
}

inline HttpConnection::~HttpConnection() {
  if (exchange_) exchange_->detach();
}

inline void HttpConnection::start() {
  hub_.connections.insert(this);
  if (admission_ == HttpAdmission::turned_away) {
    ++hub_.num_turned_away;
  } else {
    ++hub_.num_connections;
    if (!peer_.is_loopback) ++hub_.connections_by_address[peer_.counted_as];
  }
  asio::co_spawn(
      hub_.context, [self = shared_from_this()] { return self->run(); }, asio::detached);
}

// Closes, and takes the connection out of every count.
inline void HttpConnection::over() noexcept {
  is_gone_ = true;
  try {
    if (exchange_) std::exchange(exchange_, nullptr)->client_gone();
  } catch (...) {  // of the callback: nobody is left to tell
  }
  deadline_timer_.cancel();
  look_again_.cancel();
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  hub_.connections.erase(this);
  if (admission_ == HttpAdmission::turned_away) {
    --hub_.num_turned_away;
    return;
  }
  --hub_.num_connections;
  const auto count = hub_.connections_by_address.find(peer_.counted_as);
  if (!peer_.is_loopback && --count->second == 0) hub_.connections_by_address.erase(count);
}

inline Awaitable<void> HttpConnection::run() {
  try {
    co_await serve();
    if (lingers_) co_await linger();
  } catch (...) {  // no memory, or the handler's: this connection is over, the others go on
  }
  over();
}

inline Awaitable<void> HttpConnection::serve() {
  if (admission_ == HttpAdmission::turned_away) {
    HttpResponse response{.status = 503, .headers = {{"Retry-After", "1"}}};
    response.body = hub_.error_body(503, "too many connections are open");
    co_await refuse(std::move(response), false);
    co_return;
  }
  bool goes_on = co_await shake_hands();
  for (size_t turn = 1; goes_on; ++turn) {
    goes_on = co_await serve_request();
    if (turn % kTurnsAtOnce == 0) co_await yield();
  }
}

inline Awaitable<bool> HttpConnection::serve_request() {
  HttpRequestReader reader(hub_.limits);
  if (!co_await read_head(reader)) co_return false;
  HttpGate gate = pass_gate(reader);
  if (gate.refusal) {
    co_await refuse(std::move(*gate.refusal), reader.is_head());
    co_return false;
  }
  if (!co_await read_body(reader)) co_return false;
  co_return co_await answer(reader, std::move(gate.held));
}

inline Awaitable<bool> HttpConnection::shake_hands() {
  set_deadline(hub_.limits.header_time);
  while (true) {
    const HttpSocket::Status status = socket_.shake_hands();
    if (status == HttpSocket::Status::done) co_return true;
    if (status == HttpSocket::Status::closed) co_return false;
    const Event event = co_await wait(status);
    if (event != Event::ready) co_return false;
  }
}

inline Awaitable<bool> HttpConnection::read_head(HttpRequestReader& reader) {
  feed(reader);
  is_idle_ = !reader.has_begun();
  set_deadline(is_first_ || reader.has_begun() ? hub_.limits.header_time
                                               : hub_.limits.keep_alive_time);
  while (reader.state() == HttpRequestReader::State::head) {
    const Event event = co_await read_some(reader);
    if (event == Event::expired && reader.has_begun()) {
      co_return co_await refuse_malformed(reader, 408, "the header took too long to come");
    }
    if (event != Event::ready) co_return false;
    if (is_idle_ && !is_first_) set_deadline(hub_.limits.header_time);
    is_idle_ = false;
  }
  clear_deadline();
  if (reader.state() == HttpRequestReader::State::gate) co_return true;
  co_return co_await refuse_malformed(reader, reader.refusal().status(), reader.refusal().what());
}

inline HttpGate HttpConnection::pass_gate(HttpRequestReader& reader) {
  reader.request().peer = peer_.name;
  reader.request().is_loopback = peer_.is_loopback;
  ++hub_.num_requests;
  return hub_.handler.gate ? hub_.handler.gate(reader.request()) : HttpGate{};
}

inline Awaitable<bool> HttpConnection::read_body(HttpRequestReader& reader) {
  reader.accept_body();
  if (reader.state() == HttpRequestReader::State::done) co_return true;
  if (reader.framing().expects_continue && input_.empty()) {
    output_.bytes() += "HTTP/1.1 100 Continue\r\n\r\n";
    if (!co_await send_all()) co_return false;
  }
  feed(reader);
  const HttpClock::time_point start = HttpClock::now();
  for (size_t turn = 1; reader.state() == HttpRequestReader::State::body; ++turn) {
    const auto earned =
        std::chrono::milliseconds(reader.request().body.size() * 1000 / kMinBodyBytesPerSecond);
    set_deadline(start + std::min(hub_.limits.body_time, hub_.limits.body_grace + earned));
    const Event event = co_await read_some(reader);
    if (event == Event::expired) {
      co_return co_await refuse_malformed(reader, 408, "the body took too long to come");
    }
    if (event == Event::gone) co_return false;
    if (turn % kTurnsAtOnce == 0) co_await yield();
  }
  clear_deadline();
  if (reader.state() == HttpRequestReader::State::done) co_return true;
  co_return co_await refuse_malformed(reader, reader.refusal().status(), reader.refusal().what());
}

inline Awaitable<bool> HttpConnection::refuse_malformed(HttpRequestReader& reader, int status,
                                                        std::string message) {
  ++hub_.num_malformed;
  HttpResponse response{.status = status};
  response.body = hub_.error_body(status, message);
  co_await refuse(std::move(response), reader.is_head());
  co_return false;
}

// Closing with bytes unread would break the connection, and with it the answer that is on its way.
inline Awaitable<void> HttpConnection::linger() {
  input_ = std::string();
  if (!socket_.finish_writing()) co_return;
  set_deadline(kLingerTime);
  for (size_t size = 0; size < kMaxLingerBytes;) {
    const HttpSocket::Outcome outcome = socket_.discard(hub_.scratch);
    if (outcome.status == HttpSocket::Status::closed) co_return;
    size += outcome.size;
    const Event event = co_await wait(HttpSocket::Status::wait_to_read);
    if (event != Event::ready) co_return;
  }
}

inline void HttpConnection::feed(HttpRequestReader& reader) {
  input_.erase(0, reader.take(input_));
  if (input_.empty() && input_.capacity() > kKeptInputBytes) input_.shrink_to_fit();
}

inline Awaitable<HttpConnection::Event> HttpConnection::read_some(HttpRequestReader& reader) {
  while (true) {
    const HttpSocket::Outcome outcome = socket_.read(hub_.scratch);
    if (outcome.status == HttpSocket::Status::closed) co_return Event::gone;
    if (outcome.status == HttpSocket::Status::done) {
      const std::string_view bytes(hub_.scratch.data(), outcome.size);
      input_.append(bytes.substr(reader.take(bytes)));
      co_return Event::ready;
    }
    if (is_idle_ && hub_.is_draining) co_return Event::gone;
    const Event event = co_await wait(outcome.status);
    if (event != Event::ready) co_return event;
  }
}

inline Awaitable<HttpConnection::Event> HttpConnection::wait(HttpSocket::Status status) {
  if (is_cut_) co_return Event::gone;
  if (is_expired_) co_return Event::expired;
  boost::system::error_code error;
  const auto kind = status == HttpSocket::Status::wait_to_write ? HttpDescriptor::wait_write
                                                                : HttpDescriptor::wait_read;
  co_await descriptor_.async_wait(kind, asio::redirect_error(kAwait, error));
  if (is_cut_) co_return Event::gone;
  if (is_expired_) co_return Event::expired;
  co_return error&& error != asio::error::operation_aborted ? Event::gone : Event::ready;
}

inline Awaitable<void> HttpConnection::yield() { co_await asio::post(hub_.context, kAwait); }

inline void HttpConnection::wake() {
  boost::system::error_code ignored;
  descriptor_.cancel(ignored);
  look_again_.cancel();
}

inline void HttpConnection::finish_if_idle() {
  if (is_idle_) wake();
}

inline void HttpConnection::cut() {
  is_cut_ = true;
  wake();
}

inline void HttpConnection::set_deadline(std::chrono::milliseconds from_now) {
  set_deadline(HttpClock::now() + from_now);
}

// The timer is left alone when it rings early enough: a deadline moves far more often than it
// passes.
inline void HttpConnection::set_deadline(HttpClock::time_point deadline) {
  deadline_ = deadline;
  is_expired_ = false;
  if (deadline < timer_at_) wait_for_deadline(deadline);
}

inline void HttpConnection::wait_for_deadline(HttpClock::time_point when) {
  timer_at_ = when;
  deadline_timer_.expires_at(when);
  deadline_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->is_gone_) return;
    self->timer_at_ = HttpClock::time_point::max();
    if (self->deadline_ == HttpClock::time_point::max()) return;
    if (HttpClock::now() < self->deadline_) return self->wait_for_deadline(self->deadline_);
    self->is_expired_ = true;
    self->deadline_ = HttpClock::time_point::max();
    self->wake();
  });
}

}  // namespace paceline
