#include "load/step_defaults.h"

#include "runner/model_runner.h"

namespace paceline {

int64_t step_tokens(const LoadOptions& options, const cuda::CudaDevice* device,
                    const DecoderConfig& config) {
  if (options.max_num_batched_tokens != 0) return options.max_num_batched_tokens;
  // Fewer rows leave a GPU's matrix units idle, and a step of a billion weights takes 10 ms for
  // 2,048 of them.
  constexpr int64_t kFewest = 512, kMost = 8192;
  constexpr size_t kMemoryShare = 16;
  if (device == nullptr) return kFewest;
  int64_t rows = kMost;
  while (rows > kFewest && runner_activation_bytes(config, {.max_rows = rows}) >
                               device->info().total_bytes / kMemoryShare) {
    rows /= 2;
  }
  return rows;
}

// Answers are smooth if a prompt makes no step so long that it shows. A GPU's steps are so short
// that several of them don't: 25 ms are 40 tokens a second, more than anybody reads.
StepSlowdown step_slowdown(const LoadOptions& options, const cuda::CudaDevice* device) {
  constexpr double kSmoothSlowdown = 2.5, kFreeSeconds = 0.025;
  if (options.max_step_slowdown != kSmoothSteps) return {options.max_step_slowdown, 0};
  return {kSmoothSlowdown, device == nullptr ? 0 : kFreeSeconds};
}

}  // namespace paceline
