// The processor's model name.
#pragma once

#include <string>

namespace paceline {

// "unknown" where the system has no name for it.
std::string processor_name();

}  // namespace paceline
