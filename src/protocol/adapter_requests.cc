#include "protocol/adapter_requests.h"

namespace paceline {
namespace {

constexpr FieldDef<LoadAdapterRequest> kLoadFields[] = {
    {.name = "lora_name",
     .type = kAnyText,
     .is_required = true,
     .help = "The adapter's name, which requests give as their model.",
     .read = [](const FieldValue& v, LoadAdapterRequest& t) { t.name = v.text(); }},
    {.name = "lora_path",
     .type = kAnyText,
     .is_required = true,
     .help = "Its directory or file, beneath --lora-directory.",
     .read = [](const FieldValue& v, LoadAdapterRequest& t) { t.path = v.text(); }},
    {.name = "load_inplace",
     .type = kBoolean,
     .by_default = false,
     .help = "Replace an adapter of this name; its running requests end with the old one.",
     .read = [](const FieldValue& v, LoadAdapterRequest& t) { t.replaces = v.boolean(); }},
    {.name = "model",
     .type = kAnyText,
     .help = "The model that it is for; the first one by default.",
     .read = [](const FieldValue& v, LoadAdapterRequest& t) { t.model = v.text(); }},
};

constexpr FieldDef<UnloadAdapterRequest> kUnloadFields[] = {
    {.name = "lora_name",
     .type = kAnyText,
     .is_required = true,
     .help = "The adapter's name; its running requests go on to their end.",
     .read = [](const FieldValue& v, UnloadAdapterRequest& t) { t.name = v.text(); }},
};

}  // namespace

LoadAdapterRequest parse_load_adapter_request(const Json& body, const RequestTerms& terms) {
  LoadAdapterRequest request;
  RequestReader reader(body, terms);
  reader.read<LoadAdapterRequest>(kLoadFields, request);
  reader.finish();
  return request;
}

UnloadAdapterRequest parse_unload_adapter_request(const Json& body, const RequestTerms& terms) {
  UnloadAdapterRequest request;
  RequestReader reader(body, terms);
  reader.read<UnloadAdapterRequest>(kUnloadFields, request);
  reader.finish();
  return request;
}

FieldList load_adapter_request_fields() { return list_fields<LoadAdapterRequest>(kLoadFields); }
FieldList unload_adapter_request_fields() {
  return list_fields<UnloadAdapterRequest>(kUnloadFields);
}

}  // namespace paceline
