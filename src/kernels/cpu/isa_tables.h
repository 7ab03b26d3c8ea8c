// The table of every instruction set that this binary was compiled for.
#pragma once

#include "kernels/compiled_isas.h"
#include "kernels/cpu/kernel_table.h"

namespace paceline {

#define PACELINE_DECLARE_TABLE(isa) \
  namespace isa {                   \
  KernelTable make_kernel_table();  \
  }
PACELINE_COMPILED_ISAS(PACELINE_DECLARE_TABLE)
#undef PACELINE_DECLARE_TABLE

}  // namespace paceline
