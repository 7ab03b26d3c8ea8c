// The bodies of /models/load and /models/unload, in llama.cpp's shape, and of /v1/load_lora_adapter
// and /v1/unload_lora_adapter, in vLLM's.
#pragma once

#include <optional>
#include <string>

#include "protocol/request_fields.h"

namespace paceline {

struct ModelRequest {
  std::string model;
};

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
ModelRequest parse_model_request(const Json& body, const RequestTerms& terms = {});
LoadAdapterRequest parse_load_adapter_request(const Json& body, const RequestTerms& terms = {});
UnloadAdapterRequest parse_unload_adapter_request(const Json& body, const RequestTerms& terms = {});

FieldList model_request_fields();
FieldList load_adapter_request_fields();
FieldList unload_adapter_request_fields();

}  // namespace paceline
