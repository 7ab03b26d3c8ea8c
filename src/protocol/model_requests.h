// The body of /models/load and /models/unload, in llama.cpp's shape.
#pragma once

#include <string>

#include "protocol/request_fields.h"

namespace paceline {

struct ModelRequest {
  std::string model;
};

// Throws RequestError naming the first field that is wrong or unknown.
ModelRequest parse_model_request(const Json& body, const RequestTerms& terms = {});

FieldList model_request_fields();

}  // namespace paceline
