// Every kernel: X(name, type), the name as in the type's kName.
#pragma once

#include "kernels/cuda/code/mma_probe.h"

#define PACELINE_CUDA_KERNELS(X) X(mma_probe, MmaProbe)
