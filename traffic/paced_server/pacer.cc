#include "traffic/paced_server/pacer.h"

#include <algorithm>

namespace paceline::traffic {

Clock::time_point Pacer::end_of_step(Clock::time_point now, bool is_decoding,
                                     int64_t prefill_rows) {
  const auto prefilled = now + std::chrono::nanoseconds(static_cast<int64_t>(
                                   1e9 * static_cast<double>(prefill_rows) / prefill_rate_));
  if (!is_decoding) {
    tick_ = grid_.before(prefilled);
    return prefilled;
  }
  ++tick_;
  const int64_t present = grid_.before(now);
  if (tick_ + kMostTicksBehind < present) tick_ = present + 1;
  return std::max(grid_.at(tick_), prefilled);
}

}  // namespace paceline::traffic
