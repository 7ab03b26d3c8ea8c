#include "protocol/model_requests.h"

namespace paceline {
namespace {

constexpr FieldDef<ModelRequest> kFields[] = {
    required("model", kAnyText, "The model's name.", store<&ModelRequest::model>),
};

}  // namespace

ModelRequest parse_model_request(const Json& body, const RequestTerms& terms) {
  return read_body<kFields>(body, terms);
}

FieldList model_request_fields() { return fields_of<kFields>(); }

}  // namespace paceline
