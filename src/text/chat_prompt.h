// Renders a conversation with the model's chat template, as serving and training see it.
#pragma once

#include <string>
#include <vector>

#include "paceline/chat_template.h"
#include "paceline/options.h"
#include "paceline/tokenizer.h"
#include "text/typed_specials.h"

namespace paceline {

class ChatTurns;
struct TextModel;

// What conversations are rendered with; TextModel has the same members.
struct ChatRenderer {
  const ChatTemplate* chat_template = nullptr;  // nullptr: `chat_problem` says why
  std::string chat_problem = {};
  const Tokenizer* tokenizer = nullptr;  // nullptr: the input's special tokens hold
  const ChatTurns* turns = nullptr;      // of the template; nullptr: tools go to it as they are
  TypedSpecials typed_specials = TypedSpecials::text;
};

ChatRenderer chat_renderer(const TextModel& model);

// Uses the model's special tokens when the input has none, gives messages with calls the shape that
// the template asks for (CallMessageShape), and explains tools in the prompt where the template
// writes no calls; conversations that the template doesn't take, or not whole, are put in order
// (tools/render_history.h). Throws Error not_found when the model has no chat template, and what
// ChatTemplate::render throws.
RenderedChat render_chat(const ChatRenderer& model, const ChatInput& input);
RenderedChat render_chat(const TextModel& model, const ChatInput& input);

// The same for a conversation that is to be answered: one that is far too long for the context is a
// RequestError context_length_exceeded, also where the template's own limits are reached first.
RenderedChat render_within_context(const TextModel& model, const ChatInput& input);

// The token ids of a rendered conversation; sets the defaults of chats in `options`.
std::vector<TokenId> encode_chat_text(const TextModel& model, const RenderedChat& prompt,
                                      GenerateOptions& options);
// The tokens at the end of such a conversation with which the template begins the answer; later
// turns may write them otherwise. 0 where they can't be found out.
int64_t num_answer_tokens(const TextModel& model, const ChatInput& input,
                          const RenderedChat& prompt);
// Of render_chat()'s text.
std::vector<TokenId> encode_chat(const TextModel& model, const ChatInput& input,
                                 GenerateOptions& options);

}  // namespace paceline
