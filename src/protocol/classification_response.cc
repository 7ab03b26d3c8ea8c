#include "protocol/classification_response.h"

#include <span>

namespace paceline {
namespace {

void write_numbers(JsonWriter& writer, std::span<const float> numbers) {
  writer.begin_array();
  for (const float number : numbers) writer.number(number);
  writer.end_array();
}

void write_input(JsonWriter& writer, const ClassifiedInput& input, int64_t index) {
  writer.begin_object().member("object", "classification").member("index", index);
  writer.key("token_id");
  input.token ? writer.integer(input.token->id) : writer.null();
  writer.key("token");
  input.token&& input.token->bytes ? writer.string(*input.token->bytes) : writer.null();
  writer.key("label");
  input.label ? writer.string(*input.label) : writer.null();
  writer.key("scores");
  if (input.label) {
    write_numbers(writer, input.scores);
  } else {
    writer.null();
  }
  if (!input.labels.empty()) {
    writer.key("labels").begin_array();
    for (const std::string& label : input.labels) writer.string(label);
    writer.end_array();
  }
  if (input.logits) {
    writer.key("logits");
    write_numbers(writer, *input.logits);
  }
  writer.end_object();
}

}  // namespace

std::string classification_response_json(const ClassificationResponse& answer) {
  constexpr size_t kOtherBytes = 256;
  size_t num_bytes = kOtherBytes;
  for (const ClassifiedInput& input : answer.inputs) {
    const size_t num_logits = input.logits ? input.logits->size() : 0;
    num_bytes += kOtherBytes + kJsonNumberBytes * (num_logits + input.scores.size());
  }
  std::string json;
  json.reserve(num_bytes);
  JsonWriter writer(json);
  writer.begin_object();
  write_head(writer, answer.head, "list");
  writer.key("data").begin_array();
  int64_t index = 0;
  for (const ClassifiedInput& input : answer.inputs) write_input(writer, input, index++);
  writer.end_array();
  write_usage(writer, answer.usage);
  writer.end_object();
  return json;
}

}  // namespace paceline
