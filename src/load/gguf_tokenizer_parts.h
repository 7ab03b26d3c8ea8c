// The parts of a tokenizer.json that both kinds of GGUF tokenizers have in common.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "load/gguf_tokens.h"

namespace paceline {

// The tokens with their texts as a tokenizer.json writes them.
class GgufTokenTexts {
 public:
  // Empty tokens and repetitions of an earlier token get an empty text, because a tokenizer.json
  // can't hold them.
  explicit GgufTokenTexts(GgufTokens tokens);

  size_t size() const { return tokens_.size(); }
  GgufTokenType type(size_t id) const { return tokens_.types[id]; }
  std::string_view text(size_t id) const { return tokens_.texts[id]; }
  bool is_special(size_t id) const {
    return type(id) == GgufTokenType::control || type(id) == GgufTokenType::unknown;
  }
  // Added tokens, which are recognised in a text first of all.
  bool is_added(size_t id) const {
    return is_special(id) || type(id) == GgufTokenType::user_defined;
  }
  bool has_type(GgufTokenType type) const;

 private:
  GgufTokens tokens_;
};

// The members `version`, `truncation` and `padding`, behind the opening brace.
void begin_tokenizer_json(JsonWriter& writer);

// The member `added_tokens`: those of the ids that `added` marks.
void write_added_tokens(const GgufTokenTexts& tokens, const std::vector<bool>& added,
                        JsonWriter& writer);

// The value of `post_processor`: the tokens around a text. add_bos_token (`otherwise` when absent)
// puts one before it, add_eos_token one behind it.
enum class BeginningToken { yes, no };
void write_frame(const GgufMetadata& metadata, const GgufTokenTexts& tokens,
                 BeginningToken otherwise, JsonWriter& writer);

struct BpeMembers {
  std::string_view unknown = {};  // empty: none
  bool byte_fallback = false;
  bool ignore_merges = false;
};

// The member `model` up to its `vocab`: `texts` by id, empty ones left out.
void begin_bpe_model(const BpeMembers& members, const std::vector<std::string_view>& texts,
                     JsonWriter& writer);

}  // namespace paceline
