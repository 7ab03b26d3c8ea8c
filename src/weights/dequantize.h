// Dequantises a matrix to plain numbers.
#pragma once

#include "base/thread_pool.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"
#include "tensor/value_rows.h"

namespace paceline {

// [rows, row_length] of rows.value_dtype(), with the bits of read_values().
OwnedTensor dequantize(const ValueRows& rows, Memory& memory, ThreadPool& threads);

}  // namespace paceline
