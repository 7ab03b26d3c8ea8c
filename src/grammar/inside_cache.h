// InsideCache keeps which tokens stay within a terminal, for all constraints over one vocabulary: a
// string's body is the same in every schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/siphash.h"
#include "grammar/token_set.h"

namespace paceline {

// Found by a walk over a part of the trie from one expression.
struct TerminalInside {
  std::vector<uint32_t> tokens;  // when they are few, else in `mask`
  std::optional<TokenSet> mask;
  std::vector<uint32_t> exits;  // nodes at which the expression matches and tokens go on
};

// Thread-safe. Over its bound it begins anew.
class InsideCache {
 public:
  static constexpr size_t kMaxBytes = 32ULL << 20;

  // Of fingerprints: from the system's randomness, so that equal ones can't be made on purpose.
  const SipKey& key() const { return key_; }
  std::shared_ptr<const TerminalInside> find(const Hash128& regex, size_t part) const;
  void keep(const Hash128& regex, size_t part, TerminalInside found);

 private:
  using Key = std::pair<std::pair<uint64_t, uint64_t>, size_t>;
  static Key key_of(const Hash128& regex, size_t part) { return {{regex.low, regex.high}, part}; }

  SipKey key_ = random_sip_key();
  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<const TerminalInside>> kept_;
  size_t bytes_ = 0;
};

}  // namespace paceline
