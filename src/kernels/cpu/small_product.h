// Products of attention: some rows at a time, of operands in the caches.
#pragma once

#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kTilePairs = 6;
constexpr int kTileVectors = kAccumulators / kTilePairs;

// out[p][v] (+)= sum over i, ascending, of a[p][i] * b[i][v].
struct SmallProduct {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride;
  int64_t depth;
  float* out;
  int64_t out_stride;
};

enum class Start { zero, out };

template <Start kStart, int kPairs, int kVectors>
static void multiply_tile(const SmallProduct& product) {
  const float* a = product.a;
  const float* b = product.b;
  const int64_t a_stride = product.a_stride;
  Vec sums[kPairs][kVectors] = {};
  if constexpr (kStart == Start::out) {
#pragma GCC unroll 6
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[p][v] = load(product.out + p * product.out_stride + v * kLanes);
      }
    }
  }
  for (int64_t i = 0; i < product.depth; ++i) {
    Vec right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = load(b + v * kLanes);
#pragma GCC unroll 6
    for (int p = 0; p < kPairs; ++p) {
      const Vec left = splat(a[p * a_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[p][v] = fma(left, right[v], sums[p][v]);
    }
    ++a;
    b += product.b_stride;
  }
#pragma GCC unroll 6
  for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store(product.out + p * product.out_stride + v * kLanes, sums[p][v]);
    }
  }
}

template <Start kStart, int kVectors, int kPairs = kTilePairs>
static void multiply_pairs(int64_t pairs, const SmallProduct& product) {
  if constexpr (kPairs > 0) {
    if (pairs == kPairs) {
      multiply_tile<kStart, kPairs, kVectors>(product);
    } else {
      multiply_pairs<kStart, kVectors, kPairs - 1>(pairs, product);
    }
  }
}

template <Start kStart, int kVectors = kTileVectors>
static void multiply_upto(int64_t vectors, int64_t pairs, const SmallProduct& product) {
  if constexpr (kVectors > 0) {
    if (vectors == kVectors) {
      multiply_pairs<kStart, kVectors>(pairs, product);
    } else {
      multiply_upto<kStart, kVectors - 1>(vectors, pairs, product);
    }
  }
}

// All columns of at most kTilePairs pairs.
template <Start kStart>
static void multiply_small(int64_t num_vectors, int64_t pairs, SmallProduct product) {
  while (num_vectors > 0) {
    const int64_t vectors = min_of(num_vectors, kTileVectors);
    multiply_upto<kStart>(vectors, pairs, product);
    product.b += vectors * kLanes;
    product.out += vectors * kLanes;
    num_vectors -= vectors;
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
