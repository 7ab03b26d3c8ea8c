// The tables of every instruction set that this binary was compiled for.
#pragma once

#include "kernels/cpu/kernel_table.h"

namespace paceline {

namespace baseline {
KernelTable make_kernel_table();
}
namespace avx2 {
KernelTable make_kernel_table();
}
namespace avxvnni {
KernelTable make_kernel_table();
}
namespace avx512vnni {
KernelTable make_kernel_table();
}
namespace avx512 {
KernelTable make_kernel_table();
}
namespace avx512bf16 {
KernelTable make_kernel_table();
}
namespace amx {
KernelTable make_kernel_table();
}

}  // namespace paceline
