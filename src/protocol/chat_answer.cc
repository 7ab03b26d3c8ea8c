#include "protocol/chat_answer.h"

#include "protocol/logprobs_json.h"

namespace paceline {

std::string chat_answer_json(const ChatAnswer& answer) {
  return choices_json(
      answer, "chat.completion",
      [](JsonWriter& writer, const AnswerChoice& choice, TokenNaming naming) {
        writer.key("message").begin_object().member("role", "assistant").key("content");
        choice.text ? writer.string(*choice.text) : writer.null();
        writer.key("refusal").null().end_object();
        write_chat_choice_logprobs(writer, choice.logprobs, naming);
      });
}

}  // namespace paceline
