// What of a strict tool's schema can't be enforced in a template's notation of arguments.
#pragma once

#include "tools/tool_set.h"
#include "tools/turn_format.h"

namespace paceline {

// Of arguments that the template writes one by one. Throws Error unsupported, which names the
// keyword and where it is in the tool's schema.
void check_strict_parameters(const ArgumentsFormat& format, const Tool& tool);

}  // namespace paceline
