#include "protocol/seal.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/base64.h"
#include "base/error.h"
#include "base/mapped_file.h"

namespace paceline {
namespace {

constexpr std::string_view kPrefix = "pls1_";
constexpr size_t kSaltBytes = 32;
constexpr size_t kTagBytes = 16;
constexpr size_t kMostTextBytes = std::numeric_limits<int>::max() / 2;
// Each value has its own key, so its nonce may be constant.
constexpr std::array<uint8_t, 12> kNonce = {};

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

uint8_t* bytes_of(std::string& text) { return reinterpret_cast<uint8_t*>(text.data()); }
const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// `text` encrypted or decrypted; `tag` is written, or compared: nothing when it differs.
std::optional<std::string> cipher(const Seal::Key& key, std::string_view text, std::string& tag,
                                  bool encrypts) {
  const Cipher context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  PL_CHECK(context != nullptr, "no memory for a cipher");
  std::string out(text.size(), '\0');
  int size = 0;
  bool is_done = EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.data(),
                                   kNonce.data(), encrypts ? 1 : 0) == 1 &&
                 EVP_CipherUpdate(context.get(), bytes_of(out), &size, bytes_of(text),
                                  static_cast<int>(text.size())) == 1;
  PL_CHECK(is_done, "AES-256-GCM isn't there");
  if (!encrypts) EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data());
  if (EVP_CipherFinal_ex(context.get(), nullptr, &size) != 1) return std::nullopt;
  if (encrypts) EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data());
  return out;
}

std::string to_url_text(std::string_view bytes) {
  std::string text = base64_of_bytes(bytes);
  while (!text.empty() && text.back() == '=') text.pop_back();
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

// Nothing for a text that to_url_text wouldn't write: its last digit may have bits of no byte.
std::optional<std::string> from_url_text(std::string_view url_text) {
  std::string text(url_text);
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  auto bytes = bytes_of_base64(text);
  if (bytes && to_url_text(*bytes) != url_text) return std::nullopt;
  return bytes;
}

}  // namespace

Seal Seal::random() {
  Key key;
  if (RAND_bytes(key.data(), static_cast<int>(key.size())) != 1) {
    throw Error(ErrorCode::internal, "the system has no random bytes for the key of sealed values");
  }
  return Seal(key);
}

Seal Seal::from_file(const std::filesystem::path& file) {
  constexpr size_t kMostBytes = 4096;
  std::string text = read_text_file(file, kMostBytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  Key key;
  size_t size = 0;
  const int is_hex = OPENSSL_hexstr2buf_ex(key.data(), key.size(), &size, text.c_str(), '\0');
  if (is_hex != 1 || size != key.size() || text.size() != 2 * key.size()) {
    throw error_of(ErrorCode::invalid,
                   "{}: found {} bytes of text, expected a key of 64 hexadecimal digits; "
                   "openssl rand -hex 32 makes one",
                   file.string(), text.size());
  }
  return Seal(key);
}

// The lengths keep scope and text apart.
Seal::Key Seal::digest(std::string_view label, const SealScope& scope,
                       std::string_view text) const {
  const std::string message = fmt::format("{}\n{} {}\n{}{}{}", label, scope.purpose.size(),
                                          scope.owner.size(), scope.purpose, scope.owner, text);
  Key digest{};
  unsigned size = 0;
  const auto* const done = HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
                                bytes_of(message), message.size(), digest.data(), &size);
  PL_CHECK(done != nullptr && size == digest.size(), "SHA-256 isn't there");
  return digest;
}

std::string Seal::close(std::string_view text, const SealScope& scope) const {
  PL_CHECK(text.size() <= kMostTextBytes, "a text that is too long to be sealed");
  const Key salt_bytes = digest("salt", scope, text);
  const std::string salt(salt_bytes.begin(), salt_bytes.end());
  std::string tag(kTagBytes, '\0');
  const auto encrypted = cipher(digest("key", scope, salt), text, tag, true);
  PL_CHECK(encrypted, "AES-256-GCM isn't there");
  return std::string(kPrefix) + to_url_text(salt + *encrypted + tag);
}

std::optional<std::string> Seal::open(std::string_view sealed, const SealScope& scope) const {
  if (sealed.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const auto bytes = from_url_text(sealed.substr(kPrefix.size()));
  if (!bytes || bytes->size() < kSaltBytes + kTagBytes || bytes->size() > kMostTextBytes) {
    return std::nullopt;
  }
  const std::string_view all = *bytes;
  std::string tag(all.substr(all.size() - kTagBytes));
  const std::string_view encrypted = all.substr(kSaltBytes, all.size() - kSaltBytes - kTagBytes);
  return cipher(digest("key", scope, all.substr(0, kSaltBytes)), encrypted, tag, false);
}

}  // namespace paceline
