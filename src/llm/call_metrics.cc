#include "llm/call_metrics.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/time_source.h"

namespace paceline {
namespace {

Clock::time_point after(Clock::time_point begin, double seconds) {
  return begin +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
}

void keep_earlier(std::optional<Clock::time_point>& earliest, Clock::time_point time) {
  earliest = std::min(earliest.value_or(time), time);
}

}  // namespace

void CoveredTime::add(Clock::time_point begin, double seconds) {
  Clock::time_point end = after(begin, seconds);
  auto next = spans_.upper_bound(begin);
  if (next != spans_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != spans_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = spans_.erase(next);
  }
  spans_.emplace(begin, end);
}

double CoveredTime::seconds() const {
  Clock::duration sum{};
  for (const auto& [begin, end] : spans_) sum += end - begin;
  return std::chrono::duration<double>(sum).count();
}

void CallMetrics::add_prompt(int64_t tokens, int64_t cached_tokens) {
  sums_.prompt_tokens += tokens;
  sums_.cached_tokens += cached_tokens;
}

void CallMetrics::add(const GenerationStats& stats, Clock::time_point submitted) {
  sums_.completion_tokens += stats.output_tokens;
  sums_.preemptions += stats.preemptions;
  sums_.drafted_tokens += stats.drafted_tokens;
  sums_.accepted_tokens += stats.accepted_tokens;
  keep_earlier(first_submitted_, submitted);
  if (stats.prefill_seconds > 0) {  // it came to its end
    prefilled_ += stats.prompt_tokens - stats.cached_tokens;
    prefilling_.add(after(submitted, stats.queue_seconds), stats.prefill_seconds);
  }
  if (stats.output_tokens == 0) return;
  const auto first_token = after(submitted, stats.time_to_first_token_seconds);
  keep_earlier(first_token_, first_token);
  // The first output token comes out of the prefill.
  decoded_ += stats.output_tokens - 1;
  decoding_.add(first_token, stats.decode_seconds);
}

Metrics CallMetrics::metrics() const {
  Metrics metrics = sums_;
  metrics.prefill_tokens_per_second = rate(prefilled_, prefilling_.seconds());
  metrics.decode_tokens_per_second = rate(decoded_, decoding_.seconds());
  if (first_token_) {
    metrics.time_to_first_token_seconds =
        std::chrono::duration<double>(*first_token_ - *first_submitted_).count();
  }
  return metrics;
}

}  // namespace paceline
