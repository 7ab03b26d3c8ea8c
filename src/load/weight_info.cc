#include "load/weight_info.h"

#include <algorithm>
#include <vector>

namespace paceline {
namespace {

// Bytes without the padding of panels.
int64_t bytes_of(const PackedMatrix& matrix) {
  if (matrix.groups) {
    return matrix.n * matrix.num_records() * matrix.groups->record_bytes() / kPanelWidth;
  }
  return matrix.n * matrix.k * static_cast<int64_t>(dtype_bytes(matrix.dtype));
}

}  // namespace

WeightInfo weight_info(const Decoder& decoder) {
  WeightInfo info;
  std::vector<std::string> formats;
  for (const PackedMatrix* const matrix : decoder.weights()) {
    info.bytes += static_cast<size_t>(bytes_of(*matrix));
    if (matrix->groups && matrix->groups->activations == ActivationType::int8) {
      info.integer_products = true;
    }
    const std::string format = matrix->format_name();
    if (std::find(formats.begin(), formats.end(), format) != formats.end()) continue;
    formats.push_back(format);
    info.format += (formats.size() == 1 ? "" : "+") + format;
  }
  return info;
}

}  // namespace paceline
