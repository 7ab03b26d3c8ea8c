// The gradient of Backend::route: of the weights of a row's experts by the router's logits.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/routing.h"

namespace paceline {

// Of one row, whose choice of experts doesn't change. `experts` are those of its slots, `dweights`
// the derivatives of the loss by their weights; both [params.num_slots()].
// logits, dlogits [params.num_logits()]
void route_gradient(const RoutingParams& params, std::span<const float> logits,
                    std::span<const int32_t> experts, std::span<const double> dweights,
                    std::span<float> dlogits);

}  // namespace paceline
