// The facade's chats: a template renders the history, the rest is a generation.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "llm/llm_state.h"

namespace paceline {
namespace {

const ChatTemplate& template_of(const LoadedModel& model) {
  if (model.chat.chat_template) return *model.chat.chat_template;
  throw Error(ErrorCode::not_found, model.chat.problem);
}

// A chat's answer may be as long as the context allows.
int64_t room_behind(const LoadedModel& model, size_t prompt_tokens) {
  const int64_t context = std::min(model.engine->limits().max_model_len,
                                   std::max<int64_t>(model.decoder->config().max_position, 1));
  return std::max<int64_t>(context - static_cast<int64_t>(prompt_tokens), 1);
}

std::string render_chat(const LoadedModel& model, const ChatInput& input) {
  const ChatTemplate& chat_template = template_of(model);
  if (!input.special_tokens.empty() || !model.tokenizer) return chat_template.render(input);
  ChatInput with_tokens = input;
  with_tokens.special_tokens = model.tokenizer->special_tokens();
  return chat_template.render(with_tokens);
}

}  // namespace

std::vector<TokenId> encode_chat(const LoadedModel& model, const ChatInput& input,
                                 GenerateOptions& options) {
  std::vector<TokenId> ids = encode_prompt(model, render_chat(model, input), false);
  if (options.prompt_name.empty()) options.prompt_name = "messages";
  if (!options.max_tokens && !model.generation.max_new_tokens) {
    options.max_tokens = room_behind(model, ids.size());
  }
  return ids;
}

std::string LLM::render(const ChatInput& input) const {
  return render_chat(*open_state().model, input);
}

GenerationStream LLM::chat(const ChatInput& input, const GenerateOptions& options) {
  GenerateOptions of_chat = options;
  std::vector<TokenId> ids = encode_chat(*open_state().model, input, of_chat);
  return generate(std::move(ids), of_chat);
}

}  // namespace paceline
