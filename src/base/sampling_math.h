// The numbers of a draw, which the CPU's sampler and the kernels for GPUs compute alike, bit for
// bit: weights, ranks, noise, times, and sums that don't depend on their order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numbers>

#include "base/random.h"

namespace paceline {

// The weight of the largest logit. A weight is round(kWeightOne * exp((logit - max) /
// temperature)): a token less likely than the likeliest by more than a factor of 2^44 can't be
// drawn. Integer sums don't depend on their order, and so neither do cuts and draws.
constexpr int kWeightBits = 43;
constexpr uint64_t kWeightOne = uint64_t{1} << kWeightBits;
// Sums of this many weights stay below 2^63.
constexpr int64_t kMaxWeights = int64_t{1} << 20;

// log2(e) / temperature, for a temperature above 0.
constexpr float weight_scale(float temperature) {
  return std::min(std::numbers::log2e_v<float> / temperature, std::numeric_limits<float>::max());
}

// Below it, 2^y * kWeightOne rounds to 0.
constexpr float kLeastExponent = -46.0f;

// kWeightOne * 2^y for y in [kLeastExponent, 0]: y = n + f with |f| <= 1/2, a minimax polynomial of
// degree 5 for 2^f that is exact at 0 (relative error 4.4e-7) and the power of two by its exponent
// bits. For one float, and for vectors of them.
template <class Words, class Floats>
constexpr Floats scaled_exp2(Floats y) {
  // 1.5 * 2^23, so that adding it rounds to an integer, which stands in the lowest bits; and the
  // scale.
  constexpr float kRounder = 12582912.0f + kWeightBits;
  const Floats shifted = y + kRounder;
  const Floats f = y - (shifted - kRounder);
  Floats p = f * 0.00111255073f + 0.00966628268f;
  p = p * f + 0.0555740036f;
  p = p * f + 0.240223512f;
  p = p * f + 0.693142831f;
  p = p * f + 1.0f;
  return std::bit_cast<Floats>(std::bit_cast<Words>(p) + (std::bit_cast<Words>(shifted) << 23));
}

// The weight of one logit, no larger than `max`, which is finite; -inf weighs 0.
constexpr uint64_t weight_of(float logit, float max, float scale) {
  const float y = (logit - max) * scale;
  const float w = scaled_exp2<uint32_t>(y > kLeastExponent ? y : kLeastExponent);
  // Added to 2^52, a double below 2^51 has the nearest integer in the lowest bits.
  return std::bit_cast<uint64_t>(double{w} + 0x1p52) - std::bit_cast<uint64_t>(0x1p52);
}

// fraction * whole, rounded up, at least 1; fraction in [0, 1], whole below 2^63.
constexpr uint64_t share_of(float fraction, uint64_t whole) {
  const double share = double{fraction} * static_cast<double>(whole);
  const auto down = static_cast<uint64_t>(share);
  const uint64_t up = static_cast<double>(down) < share ? down + 1 : down;
  return std::clamp<uint64_t>(up, 1, std::max<uint64_t>(1, whole));
}

// Larger for the token that comes first: by logit, then by lower id. -0 and +0 are the same logit;
// NaN has no rank.
constexpr uint64_t rank_key(float logit, int32_t id) {
  const auto bits = std::bit_cast<uint32_t>(logit + 0.0f);
  const uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return (uint64_t{ordered} << 32) | ~static_cast<uint32_t>(id);
}
constexpr int32_t id_of_key(uint64_t key) {
  return static_cast<int32_t>(~static_cast<uint32_t>(key));
}
constexpr float logit_of_key(uint64_t key) {
  const auto ordered = static_cast<uint32_t>(key >> 32);
  return std::bit_cast<float>((ordered >> 31) != 0 ? ordered & 0x7FFFFFFFu : ~ordered);
}

// What the random numbers of a position are for; each purpose has its own.
enum class DrawPurpose : uint8_t {
  plain,     // a token
  accept,    // whether a drafted token stands
  residual,  // the token instead of a rejected one
};

// 64 random bits.
constexpr uint64_t draw_key(uint64_t seed, int64_t position,
                            DrawPurpose purpose = DrawPurpose::plain) {
  const auto words =
      philox4x32(seed, static_cast<uint64_t>(position), static_cast<uint64_t>(purpose));
  return (uint64_t{words[0]} << 32) | words[1];
}

// 64 random bits of a token: output `id` of SplitMix64 from the state `key` (Steele, Lea, Flood,
// "Fast Splittable Pseudorandom Number Generators", 2014), which adds kNoiseStep for each output.
constexpr uint64_t kNoiseStep = 0x9E3779B97F4A7C15u;
constexpr uint64_t noise_of_state(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
  return state ^ (state >> 31);
}
constexpr uint64_t token_noise(uint64_t key, int32_t id) {
  return noise_of_state(key + (static_cast<uint64_t>(id) + 1) * kNoiseStep);
}

// -log(1 - u) for u in (0, 1), to a few units in the last place: 1 - u = m * 2^exponent with m in
// [sqrt(1/2), sqrt(2)), and -log(m) = 2 atanh(s) with s = (1 - m) / (1 + m) as a series.
constexpr double minus_log_of_rest(double u) {
  constexpr uint64_t kMantissaBits = 52;
  constexpr auto kSqrtHalf = std::bit_cast<uint64_t>(std::numbers::sqrt2 / 2);
  const auto bits = std::bit_cast<uint64_t>(1.0 - u);
  const int64_t exponent = static_cast<int64_t>(bits - kSqrtHalf) >> kMantissaBits;
  const auto m = std::bit_cast<double>(bits - (static_cast<uint64_t>(exponent) << kMantissaBits));
  // Without the rounding of 1 - u where that would matter.
  const double s = exponent == 0 ? u / (2.0 - u) : (1.0 - m) / (1.0 + m);
  const double square = s * s;
  double series = 0;
  for (int n = 21; n >= 1; n -= 2) series = series * square + 1.0 / n;
  return 2.0 * s * series - static_cast<double>(exponent) * std::numbers::ln2;
}

// Exponentially distributed with mean 1 if the bits are uniform, and increasing with them:
// -log(1 - (noise + 1/2) / 2^64), the same double on every machine.
constexpr double exponential_time(uint64_t noise) {
  const double unit = (static_cast<double>(noise) + 0.5) * 0x1p-64;  // in (0, 1), rounded
  return minus_log_of_rest(std::min(unit, 1.0 - 0x1p-53));
}

// A token can't finish by `time` if the first 53 bits of its noise exceed this times its weight:
// -log(1 - u) >= u. Slightly more, beyond the rounding of times.
constexpr double noise_bound(double time) { return time * ((1.0 + 0x1p-40) * 0x1p53); }

// Never above 0; -inf for a token of probability 0. A logit of -0 gives +0 too: a GPU's minimum of
// the two zeros is -0.
constexpr float logprob_of(float logit, float log_sum_exp) {
  return std::min(0.0f, logit - log_sum_exp) + 0.0f;
}

// Distances below the largest logit in units of a power of two, so that their sums are integers.
class DistanceUnits {
 public:
  // Units so small that distances up to `range` > 0 have `bits` of them, or one less.
  constexpr DistanceUnits(double range, int bits) : per_logit_(power_of_two(bits - 1, range)) {}

  // The nearest whole number of units, as a double below 2^51. For one double, and for vectors.
  template <class Doubles>
  constexpr Doubles count(Doubles distance) const {
    return (distance * per_logit_ + 0x1p52) - 0x1p52;
  }
  constexpr double logits(double count) const { return count / per_logit_; }

 private:
  // 2^(exponent - floor(log2(range)))
  static constexpr double power_of_two(int exponent, double range) {
    constexpr uint64_t kBias = 1023;
    const uint64_t of_range = std::bit_cast<uint64_t>(range) >> 52;
    return std::bit_cast<double>((2 * kBias + static_cast<uint64_t>(exponent) - of_range) << 52);
  }

  double per_logit_;
};

// What top-n-sigma (Tang et al., 2024) needs of a row's finite logits: how many, and the sums of
// their distances below the largest and of the squares, in DistanceUnits of kSpreadBits.
constexpr int kSpreadBits = 22;
struct LogitSpread {
  uint64_t count = 0;
  uint64_t sum = 0;
  uint64_t squares = 0;  // below 2^64: at most 2^20 - 1 squares of 2^44

  // Of the population, in units squared.
  constexpr double variance() const {
    const auto n = static_cast<double>(count);
    const double mean = static_cast<double>(sum) / n;
    return std::max(0.0, static_cast<double>(squares) / n - mean * mean);
  }
};
// The logit `n` deviations below the largest.
constexpr float sigma_cutoff(float max, float n, double deviation) {
  const double cutoff = double{max} - double{n} * deviation;
  return static_cast<float>(std::max(cutoff, -double{std::numeric_limits<float>::max()}));
}

// The sum of distances below the largest logit, each times its weight: exact, in DistanceUnits of
// kTypicalBits for what has a weight. Its quotient by the sum of weights is the entropy, less the
// -log p of the largest, over the temperature.
constexpr int kTypicalBits = 27;  // of the temperature; weights are 0 beyond 31.2 temperatures
struct WeighedDistance {
  uint64_t low = 0;   // sum of 32 bits each
  uint64_t high = 0;  // in units of 2^32

  constexpr void add(uint64_t weight, double units) {
    const auto whole = static_cast<uint64_t>(std::min(units, 4294967295.0));
    const uint64_t low_product = (weight & 0xFFFFFFFFu) * whole;
    low += low_product & 0xFFFFFFFFu;
    high += (weight >> 32) * whole + (low_product >> 32);
  }
  constexpr double mean(uint64_t total_weight) const {
    const uint64_t carried = high + (low >> 32);
    const double sum =
        static_cast<double>(carried) * 0x1p32 + static_cast<double>(low & 0xFFFFFFFFu);
    return sum / static_cast<double>(total_weight);
  }
};
// How far a logit's -log p is from the entropy, in logits; `mean` of WeighedDistance, in logits.
constexpr float distance_from_mean(float logit, float max, double mean) {
  const double off = double{max} - double{logit} - mean;
  return static_cast<float>(
      std::min(off < 0 ? -off : off, double{std::numeric_limits<float>::max()}));
}

}  // namespace paceline
