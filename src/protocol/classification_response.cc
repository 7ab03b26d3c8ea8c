#include "protocol/classification_response.h"

namespace paceline {
std::string classification_response_json(const ClassificationResponse& answer) {
  return list_json(answer.head, "data", answer.inputs.size(), answer.usage,
                   [&](JsonWriter& writer, size_t i) {
                     const ClassifiedInput& input = answer.inputs[i];
                     writer.member("object", "classification").member("index", i).key("token_id");
                     input.token ? writer.integer(input.token->id) : writer.null();
                     writer.member("token", input.token ? input.token->bytes : std::nullopt);
                     writer.member("label", input.label).key("scores");
                     input.label ? writer.value(input.scores) : writer.null();
                     if (!input.labels.empty()) writer.member("labels", input.labels);
                     if (input.logits) writer.member("logits", *input.logits);
                   });
}

}  // namespace paceline
