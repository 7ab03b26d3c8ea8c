// Builds the engine's requests from prompts and options.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/request_error.h"
#include "engine/request.h"
#include "paceline/options.h"
#include "text/text_model.h"

namespace paceline {

// Token ids of a prompt; text is encoded, ids are used as they are. Throws Error not_found for text
// when the model has no tokenizer; RequestError, before encoding, for a text far longer than the
// context. The field of errors is `name`.
std::vector<TokenId> encode_prompt(const TextModel& model, const Prompt& prompt,
                                   const std::string& name, EncodeOptions options);

// Two texts as the tokenizer joins them, with special tokens; errors likewise, but with a limit
// none of length.
PairEncoding encode_text_pair(const TextModel& model, const std::string& first,
                              const std::string& second, const std::string& name,
                              std::optional<PairLimit> limit);

// Throws RequestError context_length_exceeded for a text so long that the context can't hold its
// tokens, whatever they are.
void check_text_length(const TextModel& model, size_t num_bytes, std::string_view name);

// The name of a prompt in messages: options.prompt_name, else "prompt" or "prompt_ids".
std::string prompt_name(const Prompt& prompt, const std::string& asked);

// An error of compiling the constraint that the request has in `field`.
RequestError constraint_error(const std::string& field, const Error& error);

// The compiled constraint of the options; nullptr: none. Throws RequestError with its name.
std::shared_ptr<Constraint> find_constraint(const TextModel& model, const GenerateOptions& options);

// The adapter of this name; nullptr for an empty one. Throws RequestError model_not_found.
std::shared_ptr<const LoadedAdapter> find_adapter(const TextModel& model, const std::string& name);

// Checks the options and sets unset ones from the model's files. Throws Error invalid.
GenerateOptions complete_options(const TextModel& model, const GenerateOptions& options);

// The engine's request. Unset options come from generation_config.json, else from the defaults.
GenerateRequest make_request(const TextModel& model, const Prompt& prompt,
                             const GenerateOptions& options);
// A request for the log-probabilities of a whole prompt.
GenerateRequest make_score_request(const TextModel& model, const Prompt& prompt,
                                   const ScoreOptions& options);
// What the model's files ban, and the tokens of options.bad_words: each encoded at the beginning of
// a text and after a space.
std::vector<std::vector<TokenId>> banned_sequences(const TextModel& model,
                                                   const GenerateOptions& options);

// The length of an output that no option says: `usual`, at most what max_length of the model's
// files leaves behind a prompt. Throws Error invalid when that is nothing.
int64_t default_max_tokens(const TextModel& model, int64_t prompt_tokens, int64_t usual);

// The scope of the request's prefix: requests with the same salt share it.
PrefixScope prefix_scope(const TextModel& model, const GenerateOptions& options);
PrefixScope prefix_scope(const TextModel& model, const std::string& cache_salt);

}  // namespace paceline
