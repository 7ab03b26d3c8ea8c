// The options of loading a model, as the C++ API has them.
#pragma once

#include "paceline/options.h"
#include "paceline/paceline.h"

namespace paceline::capi {

// Throws Error invalid naming the member at fault, also where there are no options or no model.
LoadOptions load_options(const paceline_load_options* options);

}  // namespace paceline::capi
