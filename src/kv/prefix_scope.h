// PrefixScope identifies the requests that may share a prefix: same adapter and same salt.
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace paceline {

struct PrefixScope {
  int64_t adapter = 0;
  Hash128 salt;
};

}  // namespace paceline
