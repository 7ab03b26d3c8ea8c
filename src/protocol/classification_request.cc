#include "protocol/classification_request.h"

#include "protocol/client_fields.h"

namespace paceline {
namespace {

void read_labels(const FieldValue& value, ClassificationRequest& target) {
  for (const FieldValue& item : value.items()) target.labels.push_back(item.text());
}

constexpr FieldDef<ClassificationRequest> kClassificationFields[] = {
    {.name = "input",
     .type = kInputs,
     .is_required = true,
     .help = "A string, an array of strings (up to 2048), of token ids, or of arrays of token ids.",
     .read = [](const FieldValue& v, ClassificationRequest& t) { t.input = read_prompts(v); }},
    {.name = "labels",
     .type = array_type(kSomeText, 1, kMaxLabels),
     .help = "Labels to choose from, which continue the input; a label that would run into its "
             "last word gets a space in front. Without labels a token is drawn.",
     .read = read_labels},
    {.name = "with_token_id",
     .type = kBoolean,
     .by_default = false,
     .help = "With labels, draw a token from the whole vocabulary too.",
     .read = [](const FieldValue& v, ClassificationRequest& t) { t.with_token_id = v.boolean(); }},
    {.name = "with_logits",
     .type = kBoolean,
     .by_default = false,
     .help = "Add the raw logits of the whole vocabulary.",
     .read = [](const FieldValue& v, ClassificationRequest& t) { t.with_logits = v.boolean(); }},
    {.name = "add_special_tokens",
     .type = kBoolean,
     .by_default = true,
     .help = "Encode a text with the special tokens (BOS) that the tokenizer adds.",
     .read = [](const FieldValue& v,
                ClassificationRequest& t) { t.options.add_special_tokens = v.boolean(); }},
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
  FieldList list;
  append_fields(common_fields(), list);
  append_client_fields(FieldLevel::request, list);
  append_fields<ClassificationRequest>(kClassificationFields, list);
  append_fields(sampling_fields(), list);
  return list;
}

}  // namespace paceline
