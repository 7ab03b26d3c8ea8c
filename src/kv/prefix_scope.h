// PrefixScope identifies the requests that may share a prefix: same adapter and same salt.
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace paceline {

struct PrefixScope {
  Hash128 adapter;  // the digest of its content; zero: none
  Hash128 salt;

  bool operator==(const PrefixScope&) const = default;
};

}  // namespace paceline
