// Finds out how a chat template marks reasoning, and which variable switches it.
#pragma once

#include <optional>

#include "tools/template_probe.h"
#include "tools/turn_format.h"

namespace paceline {

// Nothing when the template has no marks that can be found. Throws Error exhausted when it takes
// too long.
std::optional<ReasoningFormat> probe_reasoning(TemplateProbe& probe);

}  // namespace paceline
