// Log-probabilities in the four shapes that clients read.
#pragma once

#include <span>
#include <string_view>

#include "protocol/response.h"

namespace paceline {

// Completions: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. A token's alternatives
// are an object that includes its own log-probability. A token that isn't UTF-8 by itself is
// written "bytes:\xe2\x80". Offsets count characters of the choice's text; `text` begins at
// `first_offset`.
void write_completion_logprobs(JsonWriter& writer, std::span<const ReportedToken> tokens,
                               std::string_view text, TokenNaming naming, int64_t first_offset = 0);

// Chats: an array of {"token", "logprob", "bytes", "top_logprobs"}.
void write_chat_logprobs(JsonWriter& writer, std::span<const ReportedToken> tokens,
                         TokenNaming naming);

// llama.cpp's completion_probabilities: an array of {"id", "token", "bytes", "logprob",
// "top_logprobs"}.
void write_probabilities(JsonWriter& writer, std::span<const ReportedToken> tokens,
                         TokenNaming naming);

// vLLM's prompt_logprobs: an array of null (the first) and of objects from token ids to
// {"logprob", "rank", "decoded_token"}; the rank is null for a token that is not among the
// likeliest reported.
void write_prompt_logprobs(JsonWriter& writer, std::span<const ReportedToken> tokens);

// The member "logprobs" of a chat's choice: an object of them, or null.
void write_chat_choice_logprobs(JsonWriter& writer, const ReportedTokens& tokens,
                                TokenNaming naming);

}  // namespace paceline
