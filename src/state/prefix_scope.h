// PrefixScope identifies the requests that may share a prefix: same adapter, same salt, and ropes
// that are stretched alike.
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace paceline {

struct PrefixScope {
  Hash128 adapter;  // the digest of its content; zero: none
  Hash128 salt;
  int64_t stretched = 0;  // what the sequence's ropes are stretched to; 0: they aren't

  bool operator==(const PrefixScope&) const = default;
};

}  // namespace paceline
