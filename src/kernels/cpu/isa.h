// The kernels of each instruction set, as this machine has them.
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"

namespace paceline {

// PL_CHECKs that the machine runs it.
const KernelTable& kernel_table(Isa isa);

// Whether this processor shifts and masks vectors beside its products at no cost. AMD's cores have
// vector pipes that products don't use (measured on Zen 5: 32 rows of 4 bits are 10 % faster so).
// Intel's have none (Sapphire Rapids: widening pays from 18 rows on).
bool unpacks_freely();

}  // namespace paceline
