// LLM's chats: renders the history with the chat template, then generates.
#include "llm/llm_state.h"
#include "text/chat_prompt.h"
#include "text/chat_turn.h"
#include "text/tool_specs.h"

namespace paceline {

std::string LLM::render(const ChatInput& input) const {
  return render_chat(*Call(*this)->text, input).text;
}

GenerationStream LLM::chat(const ChatInput& input, const GenerateOptions& options,
                           const ChatOptions& chat_options, std::function<void()> listener) {
  const Call call(*this);
  GenerateOptions of_chat = options;
  ChatTurn turn = prepare_chat_turn(*call->text, input,
                                    {chat_options, read_tool_specs(input.tools_json)}, of_chat);
  const std::optional<TurnShape> shape = turn.shape;
  GenerateRequest request = make_chat_request(*call->text, std::move(turn), of_chat);
  CompletionShape of_completion = chat_completion_shape(request, shape);
  return call.begin(std::move(request), std::move(of_completion), std::move(listener));
}

}  // namespace paceline
