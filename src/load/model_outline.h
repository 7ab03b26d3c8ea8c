// ModelOutline is what the text side and descriptions need of a model's shape.
#pragma once

#include <cstdint>
#include <string>

#include "base/model_files.h"

namespace paceline {

class Decoder;

struct ModelOutline {
  std::string family;  // the config's model_type
  int64_t num_layers = 0;
  int64_t width = 0;  // of the residual stream
  int64_t vocab_size = 0;
  int64_t max_position = 0;    // the context that the model was made for; 0: unknown
  int64_t num_parameters = 0;  // 0: unknown
};

ModelOutline outline_of(const Decoder& decoder);

// Of any model_type, by the names that families give these fields in config.json, or in its
// text_config; what isn't there is 0. Throws Error corrupt naming a field of another type.
ModelOutline read_model_outline(const ModelFiles& files);

}  // namespace paceline
