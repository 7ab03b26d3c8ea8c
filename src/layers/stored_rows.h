// StoredRows are consecutive rows of a matrix in a checkpoint.
#pragma once

#include <cstdint>

namespace paceline {

struct StoredRows {
  int64_t first = 0;
  int64_t count = 0;

  bool operator==(const StoredRows&) const = default;
};

}  // namespace paceline
