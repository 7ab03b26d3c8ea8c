// The engine's requests, made of prompts and options.
#pragma once

#include <string>
#include <vector>

#include "engine/request.h"
#include "paceline/options.h"
#include "text/text_model.h"

namespace paceline {

// Token ids of a prompt; text is encoded, ids are taken as given. Throws Error not_found for text
// when the model has no tokenizer.
// A text that is too long by far for the context is refused before it is read: Error invalid.
std::vector<TokenId> encode_prompt(const TextModel& model, const Prompt& prompt,
                                   bool add_special_tokens);

// What messages call a prompt: as asked, else by what it holds.
std::string prompt_name(const Prompt& prompt, const std::string& asked);

// The options, checked; unset ones are what the model's own files say. Throws Error invalid.
GenerateOptions complete_options(const TextModel& model, const GenerateOptions& options);

// The engine's request: options, else generation_config.json, else the defaults.
GenerateRequest make_request(const TextModel& model, const Prompt& prompt,
                             const GenerateOptions& options);
// Log-probabilities of all of a prompt.
GenerateRequest make_score_request(const TextModel& model, const Prompt& prompt,
                                   const ScoreOptions& options);
// The tokens of options.bad_words: each as it begins a text and as it stands behind a space.
std::vector<std::vector<TokenId>> encode_bad_words(const TextModel& model,
                                                   const GenerateOptions& options);

// Who may share the request's prefix: those with the same salt.
PrefixScope prefix_scope(const TextModel& model, const GenerateOptions& options);

}  // namespace paceline
