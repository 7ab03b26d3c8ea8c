// How HttpConnection sends an answer while it watches for the client's end. Boost: for
// http_server.cc alone.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <utility>

#include "server/http_connection.h"

namespace paceline {

inline constexpr std::chrono::milliseconds kLookAgain{25};

inline void HttpHub::flush_soon(std::shared_ptr<HttpConnection> connection) {
  unflushed_.push_back(std::move(connection));
  if (unflushed_.size() == 1) asio::post(context, [this] { flush_all(); });
}

inline void HttpHub::flush_all() {
  flushing_.swap(unflushed_);
  for (const auto& connection : flushing_) connection->flush();
  flushing_.clear();
}

inline Awaitable<bool> HttpConnection::answer(HttpRequestReader& reader,
                                              std::shared_ptr<void> held) {
  const HttpAnswerTerms terms{.version_minor = reader.version_minor(),
                              .is_head = reader.is_head(),
                              .keep_alive = reader.framing().keep_alive};
  exchange_ = std::make_shared<WireExchange>(*this, std::move(reader.request()), terms, held);
  input_waits_ = false;
  hand_on(std::move(held));
  flush();
  while (!is_gone_ && !is_answered()) co_await watch();
  clear_deadline();

  const std::shared_ptr<WireExchange> exchange = std::exchange(exchange_, nullptr);
  if (is_gone_) {
    exchange->client_gone();
    co_return false;
  }
  exchange->detach();
  is_first_ = false;
  lingers_ = exchange->was_aborted() || !exchange->keeps_alive() || hub_.is_draining;
  co_return !lingers_;
}

inline void HttpConnection::hand_on(std::shared_ptr<void> held) {
  is_handing_on_ = true;
  try {
    hub_.handler.handle(exchange_, std::move(held));
  } catch (...) {  // the handler answers its own errors; what it lets through can't be answered
    exchange_->abort();
  }
  is_handing_on_ = false;
  if (exchange_.use_count() == 1) exchange_->abort();  // nobody is left to answer
}

// Until the answer may be over, or the client has gone.
inline Awaitable<void> HttpConnection::watch() {
  boost::system::error_code error;
  if (input_waits_) {
    look_again_.expires_after(kLookAgain);
    co_await look_again_.async_wait(asio::redirect_error(kAwait, error));
  } else {
    co_await descriptor_.async_wait(HttpDescriptor::wait_read, asio::redirect_error(kAwait, error));
  }
  if (is_gone_ || is_answered()) co_return;
  if (is_cut_ || (is_expired_ && is_stalled())) {
    is_gone_ = true;
  } else if (input_waits_) {
    is_gone_ = socket_.has_hung_up();
  } else {
    const HttpSocket::Status status = socket_.peek();
    is_gone_ = status == HttpSocket::Status::closed;
    input_waits_ = status == HttpSocket::Status::done;
  }
}

inline void HttpConnection::flush_soon() {
  if (is_handing_on_ || std::exchange(is_unflushed_, true)) return;
  hub_.flush_soon(shared_from_this());
}

inline void HttpConnection::flush() noexcept {
  is_unflushed_ = false;
  if (is_gone_ || waits_to_flush_ || exchange_ == nullptr) return;
  try {
    const Sent sent = send_some();
    is_gone_ = sent == Sent::gone;
    if (sent == Sent::all) clear_deadline();
    if (is_gone_ || is_answered()) return wake();
    if (sent == Sent::all) return;
    if (sent == Sent::some || deadline_ == HttpClock::time_point::max()) {
      expect_taking();
    }
    flush_when_possible();
  } catch (...) {
    is_gone_ = true;
    wake();
  }
}

inline void HttpConnection::flush_when_possible() {
  waits_to_flush_ = true;
  const auto wait = blocked_on_ == HttpSocket::Status::wait_to_read ? HttpDescriptor::wait_read
                                                                    : HttpDescriptor::wait_write;
  descriptor_.async_wait(wait, [self = shared_from_this()](const boost::system::error_code& error) {
    self->waits_to_flush_ = false;
    if (!error) return self->flush();
    // Woken by a deadline that the client has kept.
    const bool is_over = self->is_gone_ || self->is_cut_ || self->exchange_ == nullptr;
    if (!is_over && !self->output_.empty()) self->flush_when_possible();
  });
}

inline HttpConnection::Sent HttpConnection::send_some() {
  bool any = false;
  while (!output_.empty()) {
    const HttpSocket::Outcome outcome = socket_.write(output_.unsent());
    if (outcome.status == HttpSocket::Status::closed) return Sent::gone;
    if (outcome.status != HttpSocket::Status::done) {
      blocked_on_ = outcome.status;
      return any ? Sent::some : Sent::nothing;
    }
    output_.drop(outcome.size);
    num_sent_ += static_cast<int64_t>(outcome.size);
    any = true;
  }
  return Sent::all;
}

inline Awaitable<bool> HttpConnection::send_all() {
  expect_taking();
  while (true) {
    const Sent sent = send_some();
    if (sent == Sent::gone) co_return false;
    if (sent == Sent::all) break;
    if (sent == Sent::some) expect_taking();
    const Event event = co_await wait(blocked_on_);
    if (event == Event::gone || (event == Event::expired && is_stalled())) co_return false;
  }
  clear_deadline();
  co_return true;
}

inline Awaitable<void> HttpConnection::refuse(HttpResponse response, bool is_head) {
  std::string& out = output_.bytes();
  out += http_answer_head(response, {.keep_alive = false}, date());
  if (!is_head && http_status_has_body(response.status)) out += response.body;
  lingers_ = co_await send_all();
}

inline void HttpConnection::expect_taking() {
  num_taken_ = num_taken();
  set_deadline(hub_.limits.write_stall);
}

// The kernel takes more in large steps only, so that a slow client looks like one that takes
// nothing; what its own kernel has confirmed says which it is.
inline bool HttpConnection::is_stalled() {
  if (num_taken() > num_taken_) {
    expect_taking();
    return false;
  }
  ++hub_.num_stalled;
  socket_.break_on_close();
  return true;
}

}  // namespace paceline
