#include "protocol/model_requests.h"

namespace paceline {
namespace {

constexpr FieldDef<ModelRequest> kFields[] = {
    {.name = "model",
     .type = kAnyText,
     .is_required = true,
     .help = "The model's name.",
     .read = [](const FieldValue& v, ModelRequest& t) { t.model = v.text(); }},
};

}  // namespace

ModelRequest parse_model_request(const Json& body, const RequestTerms& terms) {
  ModelRequest request;
  RequestReader reader(body, terms);
  reader.read<ModelRequest>(kFields, request);
  reader.finish();
  return request;
}

FieldList model_request_fields() { return list_fields<ModelRequest>(kFields); }

}  // namespace paceline
