// What a GPU can do at best, measured by kernels that do nothing else: copies and matrix
// instructions.
#pragma once

#include "kernels/cuda/code/device_code.h"

namespace paceline::cuda {

// Copies words, 16 bytes of a thread at a time, four of them in flight.
struct CopyWords {
  static constexpr std::string_view kName = "copy_words";
  static constexpr uint32_t kThreads = 256;
  struct Params {
    const Words4* from;
    Words4* to;
    int64_t count;
  };
  struct Shared {};

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    constexpr int kInFlight = 4;
    const int64_t step = int64_t{grid_size().x} * kThreads;
    int64_t i = int64_t{block_index().x} * kThreads + thread_index();
    for (; i + (kInFlight - 1) * step < p.count; i += kInFlight * step) {
      Words4 words[kInFlight];
      for (int j = 0; j < kInFlight; ++j) words[j] = load_as<Words4>(p.from + i + j * step);
      for (int j = 0; j < kInFlight; ++j) store_as(p.to + i + j * step, words[j]);
    }
    for (; i < p.count; i += step) store_as(p.to + i, load_as<Words4>(p.from + i));
  }
};

// Each warp runs kChains independent sequences of `rounds` matrix instructions on registers.
struct MmaRate {
  static constexpr std::string_view kName = "mma_rate";
  static constexpr uint32_t kThreads = 256;
  static constexpr int kChains = 8;
  // Multiplications and additions of one instruction: 16 x 8 outputs of 16 products.
  static constexpr int64_t kOperations = 2 * 16 * 8 * 16;
  struct Params {
    float* out;  // [blocks, threads]
    int64_t rounds;
  };
  struct Shared {};

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    constexpr uint32_t kOnes = 0x3F803F80;  // two of bfloat16
    const uint32_t a[4] = {kOnes, kOnes, kOnes, kOnes};
    const uint32_t b[2] = {kOnes, kOnes};
    float d[kChains][4] = {};
    for (int64_t round = 0; round < p.rounds; ++round) {
      for (int chain = 0; chain < kChains; ++chain) mma_bf16(d[chain], a, b);
    }
    float sum = 0.0f;
    for (int chain = 0; chain < kChains; ++chain) sum += d[chain][0];
    p.out[size_t{block_index().x} * kThreads + thread_index()] = sum;
  }
};

}  // namespace paceline::cuda
