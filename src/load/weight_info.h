// The packed formats of a loaded decoder's matrices, for reports.
#pragma once

#include <cstddef>
#include <string>

#include "models/decoder.h"

namespace paceline {

struct WeightInfo {
  std::string format;             // "bfloat16", "q4x64", or several: "q4x32+q8x16"
  size_t bytes = 0;               // read for one decoded token
  bool integer_products = false;  // some multiply codes of 8 bits
};

WeightInfo weight_info(const Decoder& decoder);

}  // namespace paceline
