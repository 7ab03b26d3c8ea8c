// ReaderPace compares what a stream's client has still to read with the rate at which it reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "http/http.h"

namespace paceline {

class ReaderPace {
 public:
  static constexpr size_t kLooks = 8;
  static constexpr int64_t kMinUnread = 4 << 10;

  // Called at regular times. Whether the client lags: it has more to read than it read since
  // `kLooks` calls ago, and more than kMinUnread bytes.
  bool lags(HttpProgress progress);

 private:
  std::array<int64_t, kLooks> confirmed_ = {};  // at the last calls, in a ring
  size_t num_looks_ = 0;
};

}  // namespace paceline
