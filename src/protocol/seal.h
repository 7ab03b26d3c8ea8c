// Seal encrypts what an answer gives to its client to keep, so that only this server can read it in
// a later request: reasoning, compacted conversations.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// What a sealed value is bound to: it opens only with the same.
struct SealScope {
  std::string_view purpose;  // "reasoning"
  std::string_view owner;    // of the request's key, "" where keys aren't told apart
};

// Thread-safe. Values are AES-256-GCM under a key of their own, derived from the server's key and
// from a digest of scope and text: no nonce repeats, and equal texts of one scope have equal
// sealed values.
class Seal {
 public:
  using Key = std::array<uint8_t, 32>;

  explicit Seal(const Key& key) : key_(key) {}
  // With a random key. Throws Error internal when the system has no random bytes.
  static Seal random();
  // With the key of a file: 64 hexadecimal digits and at most a line end. Throws Error not_found or
  // invalid naming the file.
  static Seal from_file(const std::filesystem::path& file);

  // "pls1_" and base64url without padding: 48 bytes and a third of the sum more than `text`.
  std::string close(std::string_view text, const SealScope& scope) const;
  // The text; nothing for a value that this key didn't seal, of another scope, or altered.
  std::optional<std::string> open(std::string_view sealed, const SealScope& scope) const;

 private:
  Key digest(std::string_view label, const SealScope& scope, std::string_view text) const;

  Key key_;
};

}  // namespace paceline
