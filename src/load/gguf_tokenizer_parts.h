// The common parts of a tokenizer.json for both kinds of GGUF tokenizers.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "load/gguf_tokens.h"
#include "tokenizer/tokenizer_json_parts.h"

namespace paceline {

// The tokens with their texts for a tokenizer.json.
class GgufTokenTexts {
 public:
  // Empty tokens and duplicates of an earlier token get an empty text, because a tokenizer.json
  // can't hold them.
  explicit GgufTokenTexts(GgufTokens tokens);

  size_t size() const { return tokens_.size(); }
  GgufTokenType type(size_t id) const { return tokens_.types[id]; }
  std::string_view text(size_t id) const { return tokens_.texts[id]; }
  bool is_special(size_t id) const {
    return type(id) == GgufTokenType::control || type(id) == GgufTokenType::unknown;
  }
  // Added tokens are found in a text before it is encoded.
  bool is_added(size_t id) const {
    return is_special(id) || type(id) == GgufTokenType::user_defined;
  }
  bool has_type(GgufTokenType type) const;

 private:
  GgufTokens tokens_;
};

// Writes the member `added_tokens`, with the ids marked in `added`.
void write_added_tokens(const GgufTokenTexts& tokens, const std::vector<bool>& added,
                        JsonWriter& writer);

// Writes the value of `post_processor`: the tokens around a text. add_bos_token (`otherwise` when
// absent) puts one before it, add_eos_token one after it.
enum class BeginningToken { yes, no };
void write_gguf_frame(const GgufMetadata& metadata, const GgufTokenTexts& tokens,
                      BeginningToken otherwise, JsonWriter& writer);

}  // namespace paceline
