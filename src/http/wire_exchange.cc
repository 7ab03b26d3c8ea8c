#include "http/wire_exchange.h"

#include <utility>

namespace paceline {
namespace {

constexpr size_t kBlockBytes = 64 << 10;
constexpr size_t kKeptBytes = 4096;  // an idle connection keeps no more

}  // namespace

void HttpOutput::append(std::string_view bytes) {
  if (bytes.empty()) return;
  const bool is_full = !empty() && blocks_.back().size() + bytes.size() > kBlockBytes;
  if (blocks_.empty() || is_full) blocks_.emplace_back();
  blocks_.back().append(bytes);
  size_ += bytes.size();
}

void HttpOutput::append_body(std::string body) {
  if (body.size() < kBlockBytes) return append(body);
  if (empty()) blocks_.clear();
  size_ += body.size();
  blocks_.push_back(std::move(body));
}

std::string_view HttpOutput::unsent() const {
  return empty() ? std::string_view() : std::string_view(blocks_.front()).substr(sent_);
}

void HttpOutput::drop(size_t num_bytes) {
  sent_ += num_bytes;
  size_ -= num_bytes;
  while (!blocks_.empty() && sent_ >= blocks_.front().size()) {
    sent_ -= blocks_.front().size();
    const bool is_kept = blocks_.size() == 1 && blocks_.front().capacity() <= kKeptBytes;
    if (is_kept) {
      blocks_.front().clear();
      return;
    }
    blocks_.pop_front();
  }
}

WireExchange::WireExchange(HttpWire& wire, HttpRequest request, HttpResponseTerms terms,
                           std::shared_ptr<void> held)
    : wire_(&wire), request_(std::move(request)), terms_(terms), held_(std::move(held)) {}

void WireExchange::respond(HttpResponse response) {
  if (wire_ == nullptr || state_ != State::waiting) return;
  write_head(response, HttpBodyEnd::length);
  if (has_body_) wire_->output().append_body(std::move(response.body));
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
  wire_->output().append(http_response_head(response,
                                            {.body_end = body_end,
                                             .keep_alive = terms_.keep_alive,
                                             .version_minor = terms_.version_minor},
                                            wire_->date()));
}

void WireExchange::write(std::string_view piece) {
  if (wire_ == nullptr || state_ != State::streaming || !has_body_ || piece.empty()) return;
  if (terms_.version_minor == 0) {
    wire_->output().append(piece);
  } else {
    HttpOutput& out = wire_->output();
    out.append(http_chunk_head(piece.size()));
    out.append(piece);
    out.append(kHttpChunkEnd);
  }
  wire_->flush_soon();
}

void WireExchange::end() {
  if (wire_ == nullptr || has_ended()) return;
  if (state_ == State::waiting) return abort();  // there is nothing to end
  if (has_body_ && terms_.version_minor > 0) wire_->output().append(kHttpLastChunk);
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

HttpProgress WireExchange::progress() const {
  return wire_ == nullptr ? HttpProgress{} : wire_->progress();
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
