// Tokenizer converts text to token ids and back, by a model's tokenizer.json or a file like it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paceline/error.h"

namespace paceline {

using TokenId = int32_t;
class ModelFiles;  // not part of the API

// Bytes [begin, end) of the text that was encoded.
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
};

struct EncodeOptions {
  bool add_special = false;       // BOS/EOS as the post-processor says
  bool specials_as_text = false;  // special tokens written in the text are not recognised
  // Special tokens aren't recognised in these parts of the text, which are in ascending order.
  std::span<const TextSpan> plain = {};
};

// At how many tokens a pair of texts is cut, special tokens included: the longer text first, at its
// end or its beginning.
struct PairLimit {
  int64_t max_tokens = 0;
  bool drops_begin = false;
};

struct DecodeOptions {
  bool skip_special = false;
};

struct Encoding {
  std::vector<TokenId> ids;
  std::vector<TextSpan> spans;  // one per id; empty for tokens that the post-processor added
};

struct PairEncoding {
  std::vector<TokenId> ids;
  std::vector<int32_t> type_ids;  // one per id: token_type_ids of encoders
};

// Immutable after load; any number of threads may use it at once.
class Tokenizer {
 public:
  struct State;  // the implementation, not part of the API

  // Reads tokenizer.json in `directory` (else tekken.json, tokenizer.model, or vocab.json and
  // merges.txt) and, when present, tokenizer_config.json, special_tokens_map.json,
  // added_tokens.json and generation_config.json beside it.
  // Throws Error not_found when there is none of them, unsupported naming the part (e.g.
  // "model WordLevel") that isn't implemented, corrupt naming the wrong field.
  static Tokenizer load(const std::filesystem::path& directory);
  static Tokenizer load(const ModelFiles& files);
  // The same from the text of a tokenizer.json alone; `where` names it in errors.
  static Tokenizer from_json(std::string_view json, std::string_view where);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // The highest id plus one, added tokens included.
  int64_t vocab_size() const;

  // Ill-formed UTF-8 in `text` is replaced by U+FFFD first. O(n log n) in the text's length.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const;
  // The same ids, each with its span of `text` in bytes; must agree with the offsets of HF
  // tokenizers.
  Encoding encode_with_spans(std::string_view text, EncodeOptions options = {}) const;
  // Two texts as the post-processor joins them, e.g. [CLS] first [SEP] second [SEP]; `plain` of the
  // options isn't obeyed. Throws Error unsupported when it has no template for a pair. Texts are
  // cut as HF tokenizers' "longest_first" does it.
  PairEncoding encode_pair(std::string_view first, std::string_view second,
                           EncodeOptions options = {}, std::optional<PairLimit> limit = {}) const;
  // Where special tokens begin that are written in the text, overlapping ones too; ascending.
  std::vector<size_t> special_offsets(std::string_view text) const;

  // Throws Error invalid naming an id outside the vocabulary. Ill-formed UTF-8 becomes U+FFFD.
  std::string decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  // The bytes of one token inside a text (empty for an id without a token). Concatenated over a
  // sequence they are the decoded text before U+FFFD replacement, except for the decoder's changes
  // at the beginning of a text.
  std::string_view token_bytes(TokenId id) const;

  // The token as the vocabulary writes it (e.g. "Ġhello"); empty when there is no such id.
  std::string_view token_text(TokenId id) const;
  std::optional<TokenId> token_id(std::string_view token_text) const;
  bool is_special(TokenId id) const;

  // Throws Error invalid naming the id unless 0 <= id < vocab_size().
  void check_id(TokenId id) const;

  // The tokens named in the files beside tokenizer.json, if the vocabulary has them.
  std::optional<TokenId> bos_token() const;
  std::optional<TokenId> pad_token() const;
  // The tokens that end a text or a turn: eos_token, the EOS list of generation_config.json, and
  // the end-of-turn tokens of chat models. Ascending, without duplicates.
  const std::vector<TokenId>& stop_tokens() const;
  // Name and text for chat templates, e.g. {"bos_token", "<s>"}, in the order of HF transformers,
  // including names whose token doesn't exist.
  const std::vector<std::pair<std::string, std::string>>& special_tokens() const;

 private:
  friend class IncrementalDetokenizer;
  explicit Tokenizer(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Converts a growing sequence of token ids to text without splitting characters. Invariant: all
// texts returned by push(), plus finish(), equal Tokenizer::decode of all ids pushed. The texts so
// far are always well-formed UTF-8 and a prefix of that.
class IncrementalDetokenizer {
 public:
  // `tokenizer` must outlive it.
  explicit IncrementalDetokenizer(const Tokenizer& tokenizer, DecodeOptions options = {});
  IncrementalDetokenizer(IncrementalDetokenizer&&) noexcept;
  IncrementalDetokenizer& operator=(IncrementalDetokenizer&&) noexcept;
  ~IncrementalDetokenizer();

  // The text that this token completes; empty while a character is still incomplete.
  // Throws Error invalid for an id outside the vocabulary, and is then as it was before.
  std::string push(TokenId id);
  // The rest, with U+FFFD for an incomplete character. The next push begins a new text.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline
