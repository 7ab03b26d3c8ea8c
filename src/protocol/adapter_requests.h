// The bodies of /v1/load_lora_adapter and /v1/unload_lora_adapter, in vLLM's shapes.
#pragma once

#include <optional>
#include <string>

#include "protocol/request_fields.h"

namespace paceline {

struct LoadAdapterRequest {
  std::string name;
  std::string path;
  bool replaces = false;
  std::optional<std::string> model;  // that it is for; nothing: the first one
};

struct UnloadAdapterRequest {
  std::string name;
};

// Each throws RequestError naming the first field that is wrong or unknown.
LoadAdapterRequest parse_load_adapter_request(const Json& body, const RequestTerms& terms = {});
UnloadAdapterRequest parse_unload_adapter_request(const Json& body, const RequestTerms& terms = {});

FieldList load_adapter_request_fields();
FieldList unload_adapter_request_fields();

}  // namespace paceline
