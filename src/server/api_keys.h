// ApiKeys holds the digests of the accepted API keys.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/http.h"

namespace paceline {

class ApiKeys {
 public:
  explicit ApiKeys(std::span<const std::string> keys);

  bool empty() const { return digests_.empty(); }
  // In constant time.
  bool contains(std::string_view key) const;
  // The key is in Authorization, as "Bearer KEY", else in x-api-key.
  bool allows(const HttpRequest& head) const;
  // Identifies the key's owner; "" with a single key or none.
  std::string tenant_of(const HttpRequest& head) const;

 private:
  using Digest = std::array<uint8_t, 32>;
  static Digest digest_of(std::string_view key);

  std::vector<Digest> digests_;  // SHA-256
};

}  // namespace paceline
