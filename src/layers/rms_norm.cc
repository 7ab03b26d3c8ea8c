#include "layers/rms_norm.h"

#include <string>

#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {

RmsNorm::RmsNorm(const LoadContext& context, std::string_view name, int64_t width,
                 RmsNormOptions options)
    : weight_(load_vector(context, std::string(name) + ".weight", width, options.weight_offset)),
      eps_(options.eps) {}

void RmsNorm::forward(Backend& backend, const Tensor& x, const Tensor& out) const {
  backend.rms_norm(x, weight_.view, eps_, out);
}

}  // namespace paceline
