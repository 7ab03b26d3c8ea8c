// The special tokens that a made tokenizer.json lists beside those of its source.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "base/json_writer.h"
#include "tokenizer/tokenizer_config.h"

namespace paceline {

// Writes the tokens that `config` names (bos_token, ..., additional_special_tokens) as items of
// `added_tokens`: with the vocabulary's id, as `id_of` finds it, or with the next free one from
// `next_id` on, unless added_tokens_decoder or added_tokens.json has it. Those for which
// `is_listed` holds are left out.
void write_named_tokens(const TokenizerConfig& config,
                        const std::function<std::optional<int64_t>(std::string_view)>& id_of,
                        const std::function<bool(std::string_view)>& is_listed, int64_t next_id,
                        JsonWriter& writer);

}  // namespace paceline
