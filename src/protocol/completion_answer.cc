#include "protocol/completion_answer.h"

#include "protocol/logprobs_json.h"

namespace paceline {

std::string completion_answer_json(const CompletionAnswer& answer) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  write_head(writer, answer.head, "text_completion");
  writer.key("choices").begin_array();
  for (const AnswerChoice& choice : answer.choices) {
    writer.begin_object().member("index", choice.index).key("text");
    choice.text ? writer.string(*choice.text) : writer.null();
    writer.key("logprobs");
    if (choice.logprobs) {
      write_completion_logprobs(writer, *choice.logprobs, choice.text.value_or(""), answer.naming);
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
