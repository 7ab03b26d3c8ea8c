// TokenDecoder: joins the texts of tokens to decoded text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/decode_steps.h"

namespace paceline {

// The decoder of a tokenizer.json in order: steps on tokens with byte fallback among them, joining,
// then steps on the text. Immutable.
struct TokenDecoder {
  std::vector<std::unique_ptr<TokenStep>> before;  // byte fallback
  bool byte_fallback = false;
  std::vector<std::unique_ptr<TokenStep>> behind;
  bool joined_is_bytes = false;  // not yet UTF-8: ill-formed bytes become U+FFFD
  std::vector<std::unique_ptr<TextStep>> text;

  // Changes a token to its bytes inside a text; returns whether it is a byte of byte fallback.
  bool decode_inside(std::string& token) const;

  bool looks_at_first() const;
  bool looks_at_last() const;
};

// The byte that "<0x41>" stands for.
std::optional<char> fallback_byte(std::string_view token);

class TokenTable;

// Joins one sequence of tokens.
class TokenJoiner {
 public:
  // Both must outlive it.
  TokenJoiner(const TokenDecoder& decoder, const TokenTable& table);

  // Whether the next token's position matters: it must be pushed as text, not as an id.
  bool needs_text() const {
    return looks_at_last_ || (looks_at_first_ && (first_before_ || first_behind_));
  }
  // Whether nothing is held back, and the next token's position doesn't matter: its own bytes
  // follow, unless it is a byte of byte fallback.
  bool is_plain() const { return !needs_text() && !run_is_broken_ && run_.empty(); }
  // Appends the part of the joined text that is final after one more token.
  void push_id(int32_t id, std::string& out);
  void push_text(std::string_view token, std::string& out);
  // Appends the rest of it. The next token then begins another text.
  void finish(std::string& out);

 private:
  void decode(std::string token, TokenPlace place, std::string& out);
  void add_byte(char byte, std::string& out);
  void end_run(std::string& out);
  void add_replacements(size_t count, std::string& out);
  void add_behind(std::string token, bool last, std::string& out);

  const TokenDecoder& decoder_;
  const TokenTable& table_;
  bool looks_at_first_;
  bool looks_at_last_;
  bool first_before_ = true;
  bool first_behind_ = true;
  std::optional<std::string> held_;  // the last token so far, where steps treat the last one apart
  // A run of byte fallback: text if the bytes are UTF-8 together, else U+FFFD for each byte.
  std::string run_;
  size_t run_complete_ = 0;  // bytes of its whole characters
  bool run_is_broken_ = false;
};

}  // namespace paceline
