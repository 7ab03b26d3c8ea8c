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
  // ..., then the model's own.
  std::vector<std::pair<std::string, std::string>> special_tokens;
  std::vector<AddedToken> added_tokens;  // ids are not negative; tokenizer.json has most of them
  std::vector<int64_t> eos_ids;          // of generation_config.json; not negative
};

// Reads tokenizer_config.json, special_tokens_map.json, added_tokens.json and
// generation_config.json, if they exist. As in HF transformers, the second and third count only
// when the first has no added_tokens_decoder, and add_bos_token is ignored: the post-processor
// decides which tokens surround a text. Throws Error corrupt naming the wrong field.
TokenizerConfig read_tokenizer_config(const ModelFiles& files);

// Each reads one of the files; `where` names it in errors.
void read_tokenizer_config_file(std::string_view json, std::string_view where,
                                TokenizerConfig& config);
void read_special_tokens_map(std::string_view json, std::string_view where,
                             TokenizerConfig& config);
void read_added_tokens_file(std::string_view json, std::string_view where, TokenizerConfig& config);
void read_generation_eos(std::string_view json, std::string_view where, TokenizerConfig& config);

// Adds the missing added tokens of `config` to `file`. The flags of `config` win. A token of the
// vocabulary keeps its id; a token whose id is taken gets the next free one.
void add_missing_tokens(const TokenizerConfig& config, TokenizerFile& file);

}  // namespace paceline
