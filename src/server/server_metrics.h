// ServerMetrics holds the counters and histograms of /metrics.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/event.h"
#include "protocol/api_error.h"
#include "server/histogram.h"

namespace paceline {

class EngineLink;

// Error responses, by code. One thread.
struct ErrorCounts {
  // Known labels start at 0: a rate needs a first sample.
  std::map<std::string, int64_t> by_code{
      {"queue_full", 0},      {"queue_timeout", 0},  {"request_timeout", 0}, {"invalid_value", 0},
      {"numerical_error", 0}, {"internal_error", 0}, {"draining", 0},        {"overloaded", 0}};

  void count(const ApiError& error) { ++by_code[std::string(openai_kind(error.reason).code)]; }
};

// Of one model. One thread.
struct ServerMetrics {
  int64_t accepted = 0;  // requests submitted to the engine
  int64_t completed = 0;
  int64_t cancelled = 0;  // by their clients
  int64_t failed = 0;
  int64_t slow_readers = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t generation_tokens = 0;
  int64_t omitted_parts = 0;  // of tool results
  // Choices, by their finish reason.
  std::map<std::string, int64_t> finished{
      {"stop", 0}, {"length", 0}, {"cancelled", 0}, {"error", 0}};
  // By phase.
  std::map<std::string, int64_t> cancelled_in{{"queue", 0}, {"prefill", 0}, {"decode", 0}};

  Histogram time_to_first_token{latency_bounds()};
  Histogram inter_token_latency{short_latency_bounds()};
  Histogram e2e_latency{latency_bounds()};
  Histogram queue_time{latency_bounds()};
  Histogram prefill_time{latency_bounds()};
  Histogram decode_time{latency_bounds()};
  Histogram inference_time{latency_bounds()};
  Histogram time_per_output_token{token_time_bounds()};  // every gap, under vLLM's older name
  Histogram request_time_per_output_token{token_time_bounds()};  // the mean of each choice
  Histogram request_prompt_tokens{token_count_bounds()};
  Histogram request_generation_tokens{token_count_bounds()};
  Histogram params_n{num_choices_bounds()};
  Histogram params_max_tokens{token_count_bounds()};

  // The time between two tokens of a choice.
  void count_token_gap(double seconds);
  // A choice that ended; `is_first` of its prompt.
  void count_choice(const Ending& ending, bool is_first);
  // For Retry-After, from 1 to 60.
  double seconds_until_room(const EngineLink& link) const;
};

}  // namespace paceline
