// PrefixScope says who may share a prefix: requests with the same adapter and the same salt.
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace paceline {

struct PrefixScope {
  int64_t adapter = 0;
  Hash128 salt;
};

}  // namespace paceline
