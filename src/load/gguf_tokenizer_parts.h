// The parts of a tokenizer.json that both kinds of GGUF tokenizers have in common.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "load/gguf_tokens.h"

namespace paceline {

// The tokens under the texts that a tokenizer.json has for them.
class GgufTokenTexts {
 public:
  // Those that can't stand in it get an empty text: empty ones, and those with a text that an
  // earlier one has.
  explicit GgufTokenTexts(GgufTokens tokens);

  size_t size() const { return tokens_.size(); }
  GgufTokenType type(size_t id) const { return tokens_.types[id]; }
  std::string_view text(size_t id) const { return tokens_.texts[id]; }
  bool is_special(size_t id) const {
    return type(id) == GgufTokenType::control || type(id) == GgufTokenType::unknown;
  }
  // Looked for in a text before anything else happens to it.
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

// The value of `post_processor`: what is put around a text, the token that begins it unless the
// file says otherwise `if_unsaid`, and the one that ends it if the file says so.
enum class BeginningToken { yes, no };
void write_frame(const GgufMetadata& metadata, const GgufTokenTexts& tokens,
                 BeginningToken if_unsaid, JsonWriter& writer);

struct BpeMembers {
  std::string_view unknown = {};  // empty: none
  bool byte_fallback = false;
  bool ignore_merges = false;
};

// The member `model` up to its `vocab`: `texts` by id, empty ones left out.
void begin_bpe_model(const BpeMembers& members, const std::vector<std::string_view>& texts,
                     JsonWriter& writer);

}  // namespace paceline
