#include "traffic/load_client/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace paceline::traffic {
namespace {

constexpr int kOk = 200, kTooMany = 429;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Completion::Completion(CompletionRequestText request, Clock::time_point due, const TickGrid& grid,
                       Tally& tally)
    : request_(std::move(request)), due_(due), grid_(grid), tally_(tally), check_(request_.prompt) {
  ++tally_.sent;
  if (request_.is_streamed) arrivals_.reserve(static_cast<size_t>(request_.max_tokens));
}

double Completion::since_due() const { return seconds(Clock::now() - due_); }

void Completion::on_body(int status, std::string_view piece) {
  if (status != kOk || !request_.is_streamed) {
    body_ += piece;
    return;
  }
  const auto now = Clock::now();
  events_.feed(piece, [&](std::string_view data) { take_event(data, now); });
}

void Completion::take_event(std::string_view data, Clock::time_point now) {
  if (is_done_ && error_.empty()) error_ = "an event behind [DONE]";
  if (data == "[DONE]") {
    is_done_ = true;
  } else {
    take_json(data, now);
  }
}

void Completion::take_json(std::string_view json, Clock::time_point now) {
  if (json.starts_with("{\"error\":")) {
    error_ = fmt::format("stream: {}", find_string(json, "\"code\":").value_or("an error"));
    return;
  }
  if (const auto reason = find_string(json, "\"finish_reason\":")) finish_reason_ = *reason;
  if (const auto tokens = find_integer(json, "\"completion_tokens\":")) usage_tokens_ = *tokens;
  for_each_token(json, [&](int32_t token) {
    if (!has_begun()) {
      if (request_.is_streamed) tally_.first_token.add(seconds(now - due_));
      if (on_begun_) on_begun_();
    }
    check_.take(token);
    arrivals_.push_back(now);
  });
}

void Completion::on_end(int status) {
  if (status == kTooMany) {
    ++tally_.refused;
    tally_.refusal.add(since_due());
  } else if (status != kOk) {
    const auto code = find_string(body_, "\"code\":").value_or("");
    ++tally_.errors[fmt::format("status {} {}", status, code)];
  } else {
    count_whole();
  }
  on_over_();
}

void Completion::on_failure(const std::string& reason) {
  ++tally_.errors[has_begun() ? reason + ", after tokens" : reason];
  on_over_();
}

void Completion::count_whole() {
  if (!request_.is_streamed) take_json(body_, Clock::now());
  if (const std::string fault = find_fault(); !fault.empty()) {
    ++tally_.faults[fault];
  } else if (!error_.empty()) {
    ++tally_.errors[error_];
  } else {
    ++tally_.completed;
    tally_.tokens += check_.count();
    tally_.whole.add(since_due());
    if (request_.is_streamed) count_latencies();
  }
}

std::string Completion::find_fault() const {
  if (request_.is_scripted && !check_.fault().empty()) return check_.fault();
  if (!error_.empty()) return "";  // reported as an error
  if (check_.count() != request_.max_tokens) {
    return fmt::format("{} tokens instead of {}", check_.count(), request_.max_tokens);
  }
  if (finish_reason_ != "length") return fmt::format("finish_reason \"{}\"", finish_reason_);
  if (usage_tokens_ != request_.max_tokens) return fmt::format("usage of {}", usage_tokens_);
  if (request_.is_streamed && !is_done_) return "no [DONE]";
  if (!events_.is_between_events()) return "half an event";
  return "";
}

void Completion::count_latencies() {
  for (size_t i = 1; i < arrivals_.size(); ++i) {
    tally_.gap.add(seconds(arrivals_[i] - arrivals_[i - 1]));
  }
  if (arrivals_.size() < 2 || !request_.is_scripted) return;
  const auto ticks_before = [&](size_t i) {
    return grid_.before(arrivals_[i]) - static_cast<int64_t>(i);
  };
  int64_t first_tick = ticks_before(1);
  for (size_t i = 2; i < arrivals_.size(); ++i) first_tick = std::min(first_tick, ticks_before(i));
  for (size_t i = 1; i < arrivals_.size(); ++i) {
    const auto due = grid_.at(first_tick + static_cast<int64_t>(i));
    tally_.added_latency.add(seconds(arrivals_[i] - due));
  }
}

}  // namespace paceline::traffic
