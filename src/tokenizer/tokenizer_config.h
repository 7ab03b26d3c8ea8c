// TokenizerConfig: what tokenizer_config.json adds to tokenizer.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paceline {

struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
};

// Throws Error corrupt naming the field that is wrong; `where` names the file.
TokenizerConfig read_tokenizer_config(std::string_view json, std::string_view where);

}  // namespace paceline
