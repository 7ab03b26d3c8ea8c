// TokenizerConfig: the contents of the files beside tokenizer.json.
#pragma once

#include <cstdint>
#include <optional>
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
  std::vector<std::string> more_special_tokens;  // additional_special_tokens, without names
  std::string tokenizer_class;                   // empty: none is named
  std::optional<bool> add_prefix_space;
  // do_lower_case of sentence-transformers: the normalizer Lowercase runs before the file's, unless
  // that lowers case itself.
  bool lowers_case = false;
  // Only a tokenizer made of other files than tokenizer.json obeys these (made_tokenizer.h).
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> legacy;
  std::optional<bool> do_lower_case;
  std::optional<bool> tokenize_chinese_chars;
  std::optional<bool> strip_accents;
};

// Reads tokenizer_config.json, special_tokens_map.json, added_tokens.json, generation_config.json
// and sentence_bert_config.json, if they exist. As in HF transformers, the second and third count
// only when the first has no added_tokens_decoder, and add_bos_token is ignored beside a
// tokenizer.json: its post-processor decides which tokens surround a text. Throws Error corrupt
// naming the wrong field.
TokenizerConfig read_tokenizer_config(const ModelFiles& files);

// Whether ByteLevel puts a space before a text, where the config says so: transformers builds the
// steps of its classes anew, with add_prefix_space of tokenizer_config.json (GPT2Tokenizer: false
// without it); those of PreTrainedTokenizerFast (or TokenizersBackend) are as tokenizer.json has
// them. Nothing: as there.
std::optional<bool> prefix_space_of(const TokenizerConfig& config);

// Each reads one of the files; `where` names it in errors.
void read_tokenizer_config_file(std::string_view json, std::string_view where,
                                TokenizerConfig& config);
void read_special_tokens_map(std::string_view json, std::string_view where,
                             TokenizerConfig& config);
void read_added_tokens_file(std::string_view json, std::string_view where, TokenizerConfig& config);
// Of sentence_bert_config.json.
void read_sentence_case(std::string_view json, std::string_view where, TokenizerConfig& config);
void read_generation_eos(std::string_view json, std::string_view where, TokenizerConfig& config);

// Adds the missing added tokens of `config` to `file`. The flags of `config` win. A token of the
// vocabulary keeps its id; a token whose id is taken gets the next free one.
void add_missing_tokens(const TokenizerConfig& config, TokenizerFile& file);

}  // namespace paceline
