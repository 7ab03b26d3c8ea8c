#include "protocol/completion_answer.h"

#include "protocol/logprobs_json.h"

namespace paceline {

std::string completion_answer_json(const CompletionAnswer& answer) {
  return choices_json(answer, "text_completion",
                      [](JsonWriter& writer, const AnswerChoice& choice, TokenNaming naming) {
                        writer.key("text");
                        choice.text ? writer.string(*choice.text) : writer.null();
                        writer.key("logprobs");
                        if (!choice.logprobs) {
                          writer.null();
                        } else {
                          write_completion_logprobs(writer, *choice.logprobs,
                                                    choice.text.value_or(""), naming);
                        }
                      });
}

}  // namespace paceline
