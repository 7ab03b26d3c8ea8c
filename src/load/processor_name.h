// What the processor calls itself.
#pragma once

#include <string>

namespace paceline {

// "unknown" where the system doesn't say.
std::string processor_name();

}  // namespace paceline
