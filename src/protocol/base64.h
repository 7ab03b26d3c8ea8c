// Base64 (RFC 4648) of float32 elements, as answers carry embeddings.
#pragma once

#include <span>
#include <string>

namespace paceline {

// Of the elements' bytes, the lowest first, padded.
std::string base64_of(std::span<const float> elements);

}  // namespace paceline
