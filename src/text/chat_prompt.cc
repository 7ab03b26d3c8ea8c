#include "text/chat_prompt.h"

#include <algorithm>

#include "base/error.h"
#include "engine/engine.h"
#include "text/chat_turns.h"
#include "text/make_request.h"
#include "tools/told_calls.h"

namespace paceline {
namespace {

const ChatTemplate& template_of(const TextModel& model) {
  if (model.chat_template != nullptr) return *model.chat_template;
  throw Error(ErrorCode::not_found, model.chat_problem);
}

// A chat's answer may be as long as the context allows.
int64_t remaining_context(const TextModel& model, size_t prompt_tokens) {
  const int64_t context =
      std::min(model.engine.limits().max_model_len, std::max<int64_t>(model.max_position, 1));
  return std::max<int64_t>(context - static_cast<int64_t>(prompt_tokens), 1);
}

}  // namespace

std::string render_chat(const TextModel& model, const ChatInput& asked) {
  const ChatTemplate& chat_template = template_of(model);
  ChatInput input = asked;
  if (input.special_tokens.empty() && model.tokenizer != nullptr) {
    input.special_tokens = model.tokenizer->special_tokens();
  }
  if (model.turns != nullptr && has_tools(input)) {
    const TurnFormat& format = *model.turns->format();
    if (format.tells_calls) input = with_told_tools(input, format.writes_system);
  }
  return chat_template.render(input);
}

std::vector<TokenId> encode_chat(const TextModel& model, const ChatInput& input,
                                 GenerateOptions& options) {
  return encode_chat_text(model, render_chat(model, input), options);
}

std::vector<TokenId> encode_chat_text(const TextModel& model, const std::string& prompt,
                                      GenerateOptions& options) {
  if (options.prompt_name.empty()) options.prompt_name = "messages";
  std::vector<TokenId> ids = encode_prompt(model, prompt, options.prompt_name, false);
  if (!options.max_tokens && !model.generation.defaults.max_tokens) {
    options.max_tokens = remaining_context(model, ids.size());
  }
  return ids;
}

}  // namespace paceline
