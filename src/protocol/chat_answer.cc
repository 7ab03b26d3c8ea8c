#include "protocol/chat_answer.h"

#include "protocol/logprobs_json.h"

namespace paceline {

std::string chat_answer_json(const ChatAnswer& answer) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  write_head(writer, answer.head, "chat.completion");
  writer.key("choices").begin_array();
  for (const AnswerChoice& choice : answer.choices) {
    writer.begin_object().member("index", choice.index);
    writer.key("message").begin_object().member("role", "assistant").key("content");
    choice.text ? writer.string(*choice.text) : writer.null();
    writer.key("refusal").null().end_object().key("logprobs");
    if (choice.logprobs) {
      writer.begin_object().key("content");
      write_chat_logprobs(writer, *choice.logprobs, answer.naming);
      writer.key("refusal").null().end_object();
    } else {
      writer.null();
    }
    write_choice_end(writer, choice);
    writer.end_object();
  }
  writer.end_array();
  write_usage(writer, answer.usage);
  writer.end_object();
  return json;
}

}  // namespace paceline
