#include "sampling/weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "sampling/blocked_row.h"
#include "sampling/vector_lanes.h"

namespace paceline {

namespace {

constexpr float kMaxFloat = std::numeric_limits<float>::max();
// Below it the scale of weights stays the same.
constexpr float kLeastTemperature = std::numbers::log2e_v<float> / kMaxFloat;

[[gnu::always_inline]] inline Floats4 weigh(Floats4 y) {
  return scaled_exp2<Words4>(larger(y, Floats4{} + kLeastExponent));
}

// Added to 2^52, a double below 2^51 has the nearest integer in the lowest bits.
constexpr uint64_t kBitsOfTwoTo52 = 0x4330000000000000u;

[[gnu::always_inline]] inline Longs2 rounded_bits(Floats2 w) {
  return std::bit_cast<Longs2>(__builtin_convertvector(w, Doubles2) + 0x1p52);
}

// sink(i, a, b) with the weights of logits i to i + 3, kBitsOfTwoTo52 added to each.
template <class Sink>
[[gnu::always_inline]] inline void for_each_four(const float* logits, float max, float scale,
                                                 Sink&& sink) {
  for (int64_t i = 0; i < BlockedRow::kBlockSize; i += 4) {
    const Floats4 w = weigh((load4(logits + i) - max) * scale);
    sink(i, rounded_bits(__builtin_shufflevector(w, w, 0, 1)),
         rounded_bits(__builtin_shufflevector(w, w, 2, 3)));
  }
}

}  // namespace

Weigher::Weigher(float max, float temperature)
    : max_(max),
      temperature_(std::max(temperature, kLeastTemperature)),
      scale_(weight_scale(temperature)) {}

void Weigher::weigh_block(const float* logits, uint64_t* weights) const {
  for_each_four(logits, max_, scale_, [&](int64_t i, Longs2 low, Longs2 high) {
    low -= kBitsOfTwoTo52;
    high -= kBitsOfTwoTo52;
    std::memcpy(weights + i, &low, sizeof(low));
    std::memcpy(weights + i + 2, &high, sizeof(high));
  });
}

uint64_t Weigher::sum_block(const float* logits) const {
  Longs2 sum = {0, 0};
  for_each_four(logits, max_, scale_, [&](int64_t, Longs2 low, Longs2 high) { sum += low + high; });
  return sum[0] + sum[1] - BlockedRow::kBlockSize * kBitsOfTwoTo52;  // modulo 2^64
}

float Weigher::cutoff(double fraction) const {
  // Hundreds of times what rounding does to (logit - max) / temperature.
  constexpr double kMargin = 1e-3;
  constexpr double kRounding = 0x1p-1 / static_cast<double>(kWeightOne);
  const double lowest = std::max(std::log(std::max(fraction - kRounding, 0.0)), -31.0) - kMargin;
  const auto logit = static_cast<float>(
      std::max(double{max_} + lowest * double{temperature_}, -double{kMaxFloat}));
  return std::nextafter(logit, -kMaxFloat);
}

}  // namespace paceline
