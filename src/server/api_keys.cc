#include "server/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <cctype>
#include <optional>

#include "base/error.h"

namespace paceline {
namespace {

// Nothing with another scheme than bearer.
std::optional<std::string_view> key_of(const HttpRequest& head) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string* const authorization = head.header("authorization");
  if (authorization == nullptr) {
    const std::string* const key = head.header("x-api-key");
    return key == nullptr ? std::nullopt : std::optional<std::string_view>(*key);
  }
  if (authorization->size() < kScheme.size()) return std::nullopt;
  for (size_t i = 0; i < kScheme.size(); ++i) {
    const int letter = std::tolower(static_cast<unsigned char>((*authorization)[i]));
    if (letter != kScheme[i]) return std::nullopt;
  }
  std::string_view key = std::string_view(*authorization).substr(kScheme.size());
  while (!key.empty() && key.front() == ' ') key.remove_prefix(1);
  return key;
}

}  // namespace

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

bool ApiKeys::allows(const HttpRequest& head) const {
  if (digests_.empty()) return true;
  const auto key = key_of(head);
  return key && contains(*key);
}

std::string ApiKeys::tenant_of(const HttpRequest& head) const {
  if (digests_.size() < 2) return {};
  const Digest digest = digest_of(key_of(head).value_or(""));
  return {digest.begin(), digest.end()};
}

}  // namespace paceline
