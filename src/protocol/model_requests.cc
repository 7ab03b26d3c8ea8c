#include "protocol/model_requests.h"

namespace paceline {
namespace {

constexpr FieldDef<ModelRequest> kModelFields[] = {
    required("model", kAnyText, "The model's name.", store<&ModelRequest::model>),
};

constexpr FieldDef<LoadAdapterRequest> kLoadFields[] = {
    required("lora_name", kAnyText, "The adapter's name, which requests give as their model.",
             store<&LoadAdapterRequest::name>),
    required("lora_path", kAnyText, "Its directory or file, beneath --lora-directory.",
             store<&LoadAdapterRequest::path>),
    field("load_inplace", kBoolean,
          "Replace an adapter of this name; its running requests end with the old one.", kOff,
          store<&LoadAdapterRequest::replaces>),
    field("model", kAnyText, "The model that it is for; the first one by default.",
          store<&LoadAdapterRequest::model>),
};

constexpr FieldDef<UnloadAdapterRequest> kUnloadFields[] = {
    required("lora_name", kAnyText, "The adapter's name; its running requests go on to their end.",
             store<&UnloadAdapterRequest::name>),
};

}  // namespace

ModelRequest parse_model_request(const Json& body, const RequestTerms& terms) {
  return read_body<kModelFields>(body, terms);
}

LoadAdapterRequest parse_load_adapter_request(const Json& body, const RequestTerms& terms) {
  return read_body<kLoadFields>(body, terms);
}

UnloadAdapterRequest parse_unload_adapter_request(const Json& body, const RequestTerms& terms) {
  return read_body<kUnloadFields>(body, terms);
}

FieldList model_request_fields() { return fields_of<kModelFields>(); }
FieldList load_adapter_request_fields() { return fields_of<kLoadFields>(); }
FieldList unload_adapter_request_fields() { return fields_of<kUnloadFields>(); }

}  // namespace paceline
