// Dequantises a matrix to plain numbers.
#pragma once

#include "base/thread_pool.h"
#include "tensor/grouped_rows.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"

namespace paceline {

// [rows, row_length] of rows.value_dtype(), with the bits of read_values().
OwnedTensor dequantize(const GroupedRows& rows, Memory& memory, ThreadPool& threads);

}  // namespace paceline
