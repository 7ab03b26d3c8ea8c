#include "protocol/chat_response.h"

#include "protocol/assistant_message.h"
#include "protocol/logprobs_json.h"

namespace paceline {
std::string chat_response_json(const ChatResponse& answer) {
  return choices_json(answer, "chat.completion",
                      [](JsonWriter& writer, const ResponseChoice& choice, const ChatResponse& of) {
                        writer.key("message").begin_object();
                        write_assistant_message(writer, choice.text, choice.turn,
                                                of.head.reasoning_field);
                        writer.key("refusal").null().end_object();
                        write_chat_choice_logprobs(writer, choice.logprobs, of.naming);
                      });
}

}  // namespace paceline
