// Measures a loaded model's prefill and decode, each beside the roofline of the same moment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "cli/model_costs.h"
#include "kernels/roofline.h"
#include "paceline/llm.h"

namespace paceline {

struct BenchSizes {
  int64_t prompt_tokens = 512;
  int64_t output_tokens = 64;
  int64_t repetitions = 3;
};

// Medians over the repetitions.
struct BenchResult {
  std::string test;  // "prefill" or "decode"
  int64_t tokens = 0;
  double tokens_per_s = 0;
  double work_per_s = 0;      // operations, or bytes of weights read
  double roofline_per_s = 0;  // the same at best
  double fraction = 0;        // of the roofline
  // Of bfloat16 products, beside their roofline: what vdpbf16ps alone does at best; 0: not there.
  double vdpbf16ps_flops_per_s = 0;
  double vdpbf16ps_fraction = 0;
};

// Samples what the machine can do right now.
class RooflineSampler {
 public:
  RooflineSampler(Isa isa, int num_threads);
  Roofline sample();
  double sample_vdpbf16ps();

 private:
  Isa isa_;
  ThreadPool threads_;
  Memory memory_;
};

std::vector<BenchResult> measure_model(LLM& llm, const ModelCosts& costs, const BenchSizes& sizes,
                                       RooflineSampler& roofline);

}  // namespace paceline
