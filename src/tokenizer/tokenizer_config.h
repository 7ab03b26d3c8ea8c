// TokenizerConfig: the contents of the files beside tokenizer.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/model_files.h"
#include "tokenizer/tokenizer_file.h"

namespace paceline {

struct TokenizerConfig {
  // Name and text, in the order of `special_tokens_map` of HF transformers: bos_token, eos_token,
  // ..., then those of the model's own.
  std::vector<std::pair<std::string, std::string>> special_tokens;
  std::vector<AddedToken> added_tokens;  // ids are not negative; tokenizer.json has most of them
  std::vector<int64_t> eos_ids;          // of generation_config.json; not negative
};

// Reads tokenizer_config.json, special_tokens_map.json, added_tokens.json and
// generation_config.json, those that are there. As in HF transformers the second and third count
// only when the first has no added_tokens_decoder, and add_bos_token doesn't count: what is put
// around a text is the post-processor's. Throws Error corrupt naming the field that is wrong.
TokenizerConfig read_tokenizer_config(const ModelFiles& files);

// One of the files each; `where` names it in errors.
void read_tokenizer_config_file(std::string_view json, std::string_view where,
                                TokenizerConfig& config);
void read_special_tokens_map(std::string_view json, std::string_view where,
                             TokenizerConfig& config);
void read_added_tokens_file(std::string_view json, std::string_view where, TokenizerConfig& config);
void read_generation_eos(std::string_view json, std::string_view where, TokenizerConfig& config);

// Gives `file` the added tokens of `config` that it lacks. The flags of `config` win; a token that
// the vocabulary has keeps its id, and one whose id is taken gets the next free one.
void add_missing_tokens(const TokenizerConfig& config, TokenizerFile& file);

}  // namespace paceline
