// How many tokens a step has, and how long it may take, where no option says so: it depends on the
// device.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.h"
#include "models/decoder_config.h"
#include "paceline/options.h"

namespace paceline {

// The tokens of a step: max_num_batched_tokens, or the device's own. `device` is null for the CPU.
int64_t step_tokens(const LoadOptions& options, const cuda::CudaDevice* device,
                    const DecoderConfig& config);

// The limit of --max-step-slowdown.
struct StepSlowdown {
  double factor = 0;        // 0: no limit
  double free_seconds = 0;  // a step may take as long in any case
};
StepSlowdown step_slowdown(const LoadOptions& options, const cuda::CudaDevice* device);

}  // namespace paceline
