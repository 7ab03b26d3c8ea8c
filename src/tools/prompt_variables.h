// The variables of a chat template that switch reasoning in its generation prompt.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/json.h"
#include "tools/template_probe.h"

namespace paceline {

// A variable, and two values that make different prompts.
struct PromptVariable {
  std::string name;
  std::array<Json, 2> values;
  std::array<std::string, 2> prompts;  // behind the user's message
};

// At most 3. Candidates are the words of the template's source that contain "think" or "reason";
// names that many templates share come first.
std::vector<PromptVariable> prompt_variables(TemplateProbe& probe);

}  // namespace paceline
