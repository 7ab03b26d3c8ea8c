// The options of loading a model, as the C++ API has them.
#pragma once

#include <string_view>

#include "base/option_names.h"
#include "paceline/options.h"
#include "paceline/paceline.h"

namespace paceline::capi {

// The value that an option's member names; NULL leaves it as it is. Throws Error invalid beginning
// with `where`.
template <class E>
void set_named(const char* name, std::string_view where, E& member) {
  if (name != nullptr) member = option_value<E>(name, where);
}

// Throws Error invalid naming the member at fault, also where there are no options or no model.
LoadOptions load_options(const paceline_load_options* options);

}  // namespace paceline::capi
