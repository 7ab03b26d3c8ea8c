// Tokenizer turns text into token ids and back, as the model's tokenizer.json says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

using TokenId = int32_t;

struct EncodeOptions {
  bool add_special = false;       // BOS/EOS as the post-processor says
  bool specials_as_text = false;  // special tokens written in the text are not recognised
};

struct DecodeOptions {
  bool skip_special = false;
};

// Immutable after load; any number of threads may use it at once.
class Tokenizer {
 public:
  // Reads tokenizer.json (and, when present, tokenizer_config.json beside it) in `directory`.
  // Throws Error not_found when there is no tokenizer.json, unsupported naming the part (e.g.
  // "normalizer Precompiled") that isn't implemented, corrupt naming the field that is wrong.
  static std::unique_ptr<Tokenizer> load(const std::filesystem::path& directory);
  // The same from the text of a tokenizer.json; `where` names it in errors.
  static std::unique_ptr<Tokenizer> from_json(std::string_view json, std::string_view where);
  virtual ~Tokenizer() = default;

  // The highest id plus one, added tokens included.
  virtual int64_t vocab_size() const = 0;

  // Ill-formed UTF-8 in `text` is replaced by U+FFFD first. O(n log n) in the text's length.
  virtual std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const = 0;

  // Ids outside the vocabulary throw Error invalid naming the id. The result may be ill-formed
  // UTF-8 only in decode_bytes; decode replaces by U+FFFD.
  virtual std::string decode(std::span<const TokenId> ids, DecodeOptions options = {}) const = 0;

  // The bytes that one token stands for inside a text (an empty string for an id that has no
  // token). Concatenated over a sequence they are the decoded text before U+FFFD replacement, up to
  // what the decoder strips at the beginning of a text.
  virtual std::string_view token_bytes(TokenId id) const = 0;

  // The token as the vocabulary writes it (e.g. "Ġhello"); empty when there is no such id.
  virtual std::string_view token_text(TokenId id) const = 0;
  virtual std::optional<TokenId> token_id(std::string_view token_text) const = 0;
  virtual bool is_special(TokenId id) const = 0;

  // Throws Error invalid naming the id unless 0 <= id < vocab_size().
  void check_id(TokenId id) const;

  // From tokenizer_config.json when it names them and they exist in the vocabulary.
  virtual std::optional<TokenId> bos_token() const = 0;
  virtual std::optional<TokenId> eos_token() const = 0;
};

}  // namespace paceline
