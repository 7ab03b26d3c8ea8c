#include "layers/rms_norm.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/backend.h"
#include "layers/load_context.h"
#include "layers/scratch.h"

namespace paceline {

RmsNorm::RmsNorm(const LoadContext& context, std::string_view name, int64_t width,
                 RmsNormOptions options)
    : weight_(load_vector(context, std::string(name) + ".weight", width, options.weight_offset)),
      eps_(options.eps),
      weight_offset_(options.weight_offset) {}

void RmsNorm::set_values(Backend& backend, std::span<const float> stored) {
  PL_CHECK(std::ssize(stored) == weight_.view.num_elements(), "values of the weight's width");
  std::vector<float> values(stored.begin(), stored.end());
  for (float& value : values) value += weight_offset_;
  weight_ = write_vector(backend, values);
}

void RmsNorm::forward(Backend& backend, const Tensor& x, const Tensor& out) const {
  backend.rms_norm(x, weight_.view, eps_, out);
}

}  // namespace paceline
