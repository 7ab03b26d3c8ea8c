// Packs quantised matrices for a GPU (code/code_panels.h).
#pragma once

#include "base/thread_pool.h"
#include "kernels/cuda/code/code_panels.h"
#include "kernels/packed_matrix.h"

namespace paceline::cuda {

// The panels of a quantised matrix that packed_groups.h describes.
Buffer pack_code_panels(const PackedMatrix& matrix, Memory& memory, ThreadPool& threads);

// How codes of 4 bits of a group may become elements. A zero may have another sign than by the
// rule, which no sum of products shows.
CodeForm code_form(const GroupAffine& affine);

}  // namespace paceline::cuda
