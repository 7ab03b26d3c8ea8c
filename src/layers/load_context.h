// LoadContext is what a layer needs to take its weights from a checkpoint.
#pragma once

#include "base/thread_pool.h"
#include "tensor/memory.h"
#include "weights/weight_reader.h"

namespace paceline {

struct LoadContext {
  WeightReader& weights;
  Memory& memory;
  ThreadPool& threads;
  DType weight_dtype;  // what matrices are packed as
};

// The vector `name` [size] as float32, plus `offset` on every element (norms stored as w of 1 + w).
OwnedTensor load_vector(const LoadContext& context, std::string_view name, int64_t size,
                        float offset = 0.0f);

}  // namespace paceline
