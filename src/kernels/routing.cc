#include "kernels/routing.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace paceline {

void spoil_row(const RoutingParams& params, const ChosenRow& out) {
  std::iota(out.experts, out.experts + params.experts_per_token, 0);
  if (params.shared != SharedExpert::none) {
    out.experts[params.experts_per_token] = static_cast<int32_t>(params.num_experts);
  }
  std::fill_n(out.weights, params.num_slots(), std::numeric_limits<float>::quiet_NaN());
}

}  // namespace paceline
