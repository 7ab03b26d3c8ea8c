// Integer division that rounds up.
#pragma once

#include <cstdint>

namespace paceline {

// ceil(count / size), for count >= 0 and size > 0.
constexpr int64_t divide_up(int64_t count, int64_t size) { return (count + size - 1) / size; }

}  // namespace paceline
