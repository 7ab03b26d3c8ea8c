#include "server/server_metrics.h"

#include <algorithm>

#include "server/engine_link.h"

namespace paceline {

void ServerMetrics::count_choice(const Ending& ending, bool is_first) {
  const GenerationStats& stats = ending.stats;
  ++finished[std::string(finish_reason_name(ending.finish.reason))];
  if (is_first) {
    prompt_tokens += stats.prompt_tokens;
    request_prompt_tokens.observe(static_cast<double>(stats.prompt_tokens));
    cached_tokens += stats.cached_tokens;
  }
  if (ending.finish.reason == FinishReason::cancelled) {
    const char* phase = stats.output_tokens > 0     ? "decode"
                        : stats.prefill_seconds > 0 ? "prefill"
                                                    : "queue";
    ++cancelled_in[phase];
    return;
  }
  if (ending.error) return;
  request_generation_tokens.observe(static_cast<double>(stats.output_tokens));
  inference_time.observe(stats.prefill_seconds + stats.decode_seconds);
  queue_time.observe(stats.queue_seconds);
  prefill_time.observe(stats.prefill_seconds);
  e2e_latency.observe(stats.queue_seconds + stats.prefill_seconds + stats.decode_seconds);
  if (stats.output_tokens > 0) time_to_first_token.observe(stats.time_to_first_token_seconds);
  if (stats.output_tokens <= 1) return;
  decode_time.observe(stats.decode_seconds);
  const auto num_gaps = static_cast<double>(stats.output_tokens - 1);
  request_time_per_output_token.observe(stats.decode_seconds / num_gaps);
}

void ServerMetrics::count_token_gap(double seconds) {
  inter_token_latency.observe(seconds);
  time_per_output_token.observe(seconds);
}

double ServerMetrics::seconds_until_room(const EngineLink& link) const {
  constexpr double kLeast = 1, kMost = 60;
  const int64_t count = e2e_latency.count();
  if (count == 0) return kLeast;
  // Waiting requests, times the mean time of a request, over the requests that run at once.
  const double each = (prefill_time.sum() + decode_time.sum()) / static_cast<double>(count);
  const auto waiting = static_cast<double>(link.num_waiting());
  const auto running = std::max(1.0, static_cast<double>(link.num_running()));
  return std::clamp(waiting * each / running, kLeast, kMost);
}

}  // namespace paceline
