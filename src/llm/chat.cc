// LLM's chats: renders the history with the chat template, then generates.
#include "llm/llm_state.h"
#include "text/chat_prompt.h"

namespace paceline {

std::string LLM::render(const ChatInput& input) const {
  return render_chat(*open_state().text, input);
}

GenerationStream LLM::chat(const ChatInput& input, const GenerateOptions& options) {
  GenerateOptions of_chat = options;
  std::vector<TokenId> ids = encode_chat(*open_state().text, input, of_chat);
  return generate(std::move(ids), of_chat);
}

}  // namespace paceline
