#include "protocol/classification_request.h"

#include "protocol/request_reader.h"

namespace paceline {
namespace {

constexpr FieldDef<ClassificationRequest> kClassificationFields[] = {
    required("input", kInputs,
             "A string, an array of strings (up to 2048), of token ids, or of arrays of token ids.",
             [](const FieldValue& v, ClassificationRequest& t) { t.input = read_prompts(v); }),
    field("labels", array_type(kSomeText, 1, kMaxLabels),
          "Labels to choose from, which continue the input; a label that would run into its last "
          "word gets a space in front. Without labels a token is drawn.",
          store<&ClassificationRequest::labels>),
    field("with_token_id", kBoolean, "With labels, draw a token from the whole vocabulary too.",
          kOff, store<&ClassificationRequest::with_token_id>),
    field("with_logits", kBoolean, "Add the raw logits of the whole vocabulary.", kOff,
          store<&ClassificationRequest::with_logits>),
    field("add_special_tokens", kBoolean,
          "Encode a text with the special tokens (BOS) that the tokenizer adds.", kOn,
          store<&ClassificationRequest::options, &GenerateOptions::add_special_tokens>),
};

}  // namespace

ClassificationRequest parse_classification_request(const Json& body, const RequestTerms& terms) {
  ClassificationRequest request;
  RequestReader reader(body, terms);
  reader.read(common_fields(), request.common);
  read_client_fields(FieldLevel::request, reader);
  reader.read(sampling_fields(), request.options);
  reader.read<ClassificationRequest>(kClassificationFields, request);
  reader.finish();
  return request;
}

FieldList classification_request_fields() {
  FieldList list = common_and_own_fields<kClassificationFields>();
  append_fields(sampling_fields(), list);
  return list;
}

std::string classification_response_json(const ClassificationRequest& request, ItemAnswer answer) {
  answer.usage = {};
  for (const CompletedPart& part : answer.classified) {
    answer.usage.prompt_tokens += part.prompt_tokens;
  }
  return list_json(answer, "data", answer.classified.size(), [&](JsonWriter& writer, size_t i) {
    const Classification& result = answer.classified[i].classification;
    const bool has_text = result.token_id && !result.token.empty();
    writer.member("object", "classification").member("index", i);
    writer.member("token_id", result.token_id).key("token");
    has_text ? writer.string(result.token) : writer.null();
    writer.member("label", result.label).key("scores");
    result.label ? writer.value(result.scores) : writer.null();
    if (!result.labels.empty()) writer.member("labels", result.labels);
    if (request.with_logits) writer.member("logits", result.logits);
  });
}

}  // namespace paceline
