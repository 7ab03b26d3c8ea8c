// Finds out how a chat template writes arguments key by key.
#pragma once

#include <string_view>

#include "tools/call_messages.h"
#include "tools/call_sample.h"
#include "tools/template_probe.h"
#include "tools/turn_format.h"

namespace paceline {

// What stands on both sides of a call's arguments, as far as it belongs to the first and the last
// of them too.
struct ParameterNeighbours {
  std::string_view before;
  std::string_view after;
};

// Of a sample of one call, made by `messages`, whose two arguments are strings and stand as
// Style::parameters. Error unsupported when the arguments' ends can't be found.
ArgumentsFormat probe_parameters(TemplateProbe& probe, const CallMessages& messages,
                                 const CallSample& sample, const ParameterNeighbours& neighbours);

}  // namespace paceline
