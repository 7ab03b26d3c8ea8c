// CallMetrics makes the figures of a call from what the engine measured of each of its sequences.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/time_source.h"
#include "engine/event.h"
#include "paceline/results.h"

namespace paceline {

// The time that any number of spans cover together.
class CoveredTime {
 public:
  void add(Clock::time_point begin, double seconds);
  double seconds() const;

 private:
  std::map<Clock::time_point, Clock::time_point> spans_;  // disjoint: begin, end
};

// Sequences run side by side. A rate is the tokens of all, over the time in which at least one of
// them was in its prefill, or was decoding.
class CallMetrics {
 public:
  // `cached_tokens` of the prompt's `tokens` were found in the prefix cache.
  void add_prompt(int64_t tokens, int64_t cached_tokens);
  // Of a sequence that has ended.
  void add(const GenerationStats& stats, Clock::time_point submitted);

  // The peak of the memory is left out.
  Metrics metrics() const;

 private:
  Metrics sums_;
  int64_t prefilled_ = 0;
  int64_t decoded_ = 0;
  CoveredTime prefilling_;
  CoveredTime decoding_;
  std::optional<Clock::time_point> first_submitted_;
  std::optional<Clock::time_point> first_token_;
};

}  // namespace paceline
