// The fields of one line of JSON input.
#pragma once

#include <span>
#include <string_view>

#include "base/json.h"
#include "cli/settings.h"

namespace paceline {

using FieldNames = std::span<const std::string_view>;

// The fields of `generate` that are options too.
inline constexpr std::string_view kGenerateFields[] = {"max_tokens",
                                                       "temperature",
                                                       "top_p",
                                                       "top_k",
                                                       "min_p",
                                                       "repetition_penalty",
                                                       "frequency_penalty",
                                                       "presence_penalty",
                                                       "logit_bias",
                                                       "seed",
                                                       "stop",
                                                       "stop_token_ids",
                                                       "ignore_eos",
                                                       "logprobs",
                                                       "bad_words",
                                                       "allowed_token_ids"};

// Error invalid with a suggestion for a key that is in neither list.
void check_line_keys(const Json& line, FieldNames own, FieldNames options);

// Sets what the line says about options, each checked as its flag is; a null counts as absent.
void apply_option_fields(const Json& line, FieldNames options, Settings& settings);

// Exactly one of the two fields: text, or token ids.
Prompt read_prompt(const Json& line, std::string_view text_key, std::string_view ids_key);

}  // namespace paceline
