// Finds out how a chat template writes tool calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/template_probe.h"
#include "tools/turn_format.h"

namespace paceline {

// Calls as the template writes them, from the lead on, to be read back.
struct CallsWritten {
  std::string text;
  std::vector<ProbeCall> calls;
};

struct CallsFound {
  CallFormat format;
  std::string turn_end;  // behind calls and content alike
  std::vector<CallsWritten> written;
};

// Error unsupported, which names what can't be found out; exhausted when the template takes too
// long. Texts between the generation prompt and the first call that are marks of `reasoning` are no
// part of the call.
CallsFound probe_calls(TemplateProbe& probe, const PlainTurn& plain,
                       const std::optional<ReasoningFormat>& reasoning);

}  // namespace paceline
