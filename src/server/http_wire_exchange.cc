#include "server/http_wire_exchange.h"

#include <utility>

namespace paceline {

WireExchange::WireExchange(HttpWire& wire, HttpRequest request, HttpAnswerTerms terms,
                           std::shared_ptr<void> held)
    : wire_(&wire), request_(std::move(request)), terms_(terms), held_(std::move(held)) {}

void WireExchange::respond(HttpResponse response) {
  if (wire_ == nullptr || state_ != State::waiting) return;
  write_head(response, HttpBodyEnd::length);
  if (has_body_) wire_->output().bytes().append(response.body);
  finish(State::ended);
}

void WireExchange::begin(HttpResponse response) {
  if (wire_ == nullptr || state_ != State::waiting) return;
  write_head(response, terms_.version_minor == 0 ? HttpBodyEnd::close : HttpBodyEnd::chunked);
  state_ = State::streaming;
  write(response.body);
  wire_->flush_soon();
}

void WireExchange::write_head(const HttpResponse& response, HttpBodyEnd body_end) {
  has_body_ = !terms_.is_head && http_status_has_body(response.status);
  terms_.keep_alive = terms_.keep_alive && !response.close && !wire_->is_draining() &&
                      (body_end != HttpBodyEnd::close || !has_body_);
  wire_->output().bytes().append(http_answer_head(response,
                                                  {.body_end = body_end,
                                                   .keep_alive = terms_.keep_alive,
                                                   .version_minor = terms_.version_minor},
                                                  wire_->date()));
}

void WireExchange::write(std::string_view piece) {
  if (wire_ == nullptr || state_ != State::streaming || !has_body_ || piece.empty()) return;
  std::string& out = wire_->output().bytes();
  if (terms_.version_minor == 0) {
    out.append(piece);
  } else {
    append_http_chunk(out, piece);
  }
  wire_->flush_soon();
}

void WireExchange::end() {
  if (wire_ == nullptr || has_ended()) return;
  if (state_ == State::waiting) return abort();  // there is nothing to end
  if (has_body_ && terms_.version_minor > 0) wire_->output().bytes().append(kHttpLastChunk);
  finish(State::ended);
}

void WireExchange::abort() {
  if (wire_ == nullptr || has_ended()) return;
  finish(State::aborted);
}

void WireExchange::finish(State state) {
  state_ = state;
  on_close_ = nullptr;
  wire_->flush_soon();
}

size_t WireExchange::buffered_bytes() const {
  return wire_ == nullptr ? 0 : wire_->output().size();
}

void WireExchange::on_close(std::function<void()> callback) {
  if (is_open()) on_close_ = std::move(callback);
}

void WireExchange::detach() {
  wire_ = nullptr;
  on_close_ = nullptr;
}

void WireExchange::client_gone() {
  const std::function<void()> callback = std::exchange(on_close_, nullptr);
  detach();
  if (callback) callback();
}

}  // namespace paceline
