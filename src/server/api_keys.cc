#include "server/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <cctype>

#include "base/error.h"

namespace paceline {

ApiKeys::ApiKeys(std::span<const std::string> keys) {
  for (const std::string& key : keys) {
    if (key.empty()) throw Error(ErrorCode::invalid, "--api-key: empty, expected a key");
    digests_.push_back(digest_of(key));
  }
}

ApiKeys::Digest ApiKeys::digest_of(std::string_view key) {
  Digest digest{};
  unsigned size = 0;
  const int done = EVP_Digest(key.data(), key.size(), digest.data(), &size, EVP_sha256(), nullptr);
  PL_CHECK(done == 1 && size == digest.size(), "SHA-256 isn't there");
  return digest;
}

bool ApiKeys::contains(std::string_view key) const {
  const Digest digest = digest_of(key);
  int num_equal = 0;
  for (const Digest& known : digests_) {
    num_equal += CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0 ? 1 : 0;
  }
  return num_equal > 0;
}

bool ApiKeys::allows(const std::string* authorization) const {
  constexpr std::string_view kScheme = "bearer ";
  if (digests_.empty()) return true;
  if (authorization == nullptr || authorization->size() < kScheme.size()) return false;
  for (size_t i = 0; i < kScheme.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>((*authorization)[i])) != kScheme[i]) return false;
  }
  std::string_view key = std::string_view(*authorization).substr(kScheme.size());
  while (!key.empty() && key.front() == ' ') key.remove_prefix(1);
  return contains(key);
}

}  // namespace paceline
