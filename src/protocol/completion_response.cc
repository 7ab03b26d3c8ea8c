#include "protocol/completion_response.h"

#include "protocol/logprobs_json.h"

namespace paceline {

std::string completion_response_json(const CompletionResponse& answer) {
  return choices_json(
      answer, "text_completion",
      [](JsonWriter& writer, const ResponseChoice& choice, const CompletionResponse& of) {
        writer.key("text");
        choice.text ? writer.string(*choice.text) : writer.null();
        writer.key("logprobs");
        if (!choice.logprobs) {
          writer.null();
        } else {
          write_completion_logprobs(writer, *choice.logprobs, choice.text.value_or(""), of.naming);
        }
      });
}

}  // namespace paceline
