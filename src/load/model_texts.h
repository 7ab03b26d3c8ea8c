// What a model's small files say of texts: its tokenizer, how outputs end, and its chats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/model_files.h"
#include "engine/engine.h"
#include "load/loaded_model.h"

namespace paceline {

std::optional<Tokenizer> load_tokenizer_if_present(const ModelFiles& files);

// Whether the files have a chat template of their own.
bool carries_chat_template(const ModelFiles& files);

// How texts become tokens, when they end, and chats, once the tokenizer is loaded. Throws Error
// corrupt for a tokenizer that belongs to another model.
void set_up_texts(LoadedModel& model, const ModelFiles& files, int64_t vocab_size,
                  const std::string& chat_template);

// How its chats are read back, and what its outputs may be kept to.
void set_up_turns(LoadedModel& model);

// Ids unknown to the tokenizer have no text. The tokenizer must outlive the result.
TokenTexts token_texts_of(const std::optional<Tokenizer>& tokenizer);

}  // namespace paceline
