#include "kernels/routing.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace paceline {

HostRouting copy_routing(const Routing& routing) {
  const int64_t slots = routing.num_slots();
  HostRouting copy{.num_slots = slots, .experts = {}, .weights = {}};
  for (int64_t i = 0; i < routing.num_rows(); ++i) {
    const ChosenRow row = routing.row(i);
    copy.experts.insert(copy.experts.end(), row.experts, row.experts + slots);
    copy.weights.insert(copy.weights.end(), row.weights, row.weights + slots);
  }
  return copy;
}

void spoil_row(const RoutingParams& params, const ChosenRow& out) {
  std::iota(out.experts, out.experts + params.experts_per_token, 0);
  if (params.shared != SharedExpert::none) {
    out.experts[params.experts_per_token] = static_cast<int32_t>(params.num_experts);
  }
  std::fill_n(out.weights, params.num_slots(), std::numeric_limits<float>::quiet_NaN());
}

}  // namespace paceline
