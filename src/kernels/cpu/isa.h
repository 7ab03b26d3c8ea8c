// The kernels of each instruction set, as this machine has them.
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"

namespace paceline {

// PL_CHECKs that the machine runs it.
const KernelTable& kernel_table(Isa isa);

}  // namespace paceline
