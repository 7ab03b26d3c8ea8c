// Finds out which ids of calls a chat template writes.
#pragma once

#include "tools/call_messages.h"
#include "tools/template_probe.h"
#include "tools/turn_format.h"

namespace paceline {

// Completes a format that is known otherwise: pieces of an id that is written in some messages
// only, and what ids may be.
void probe_call_ids(TemplateProbe& probe, const CallMessages& messages, CallFormat& format);

}  // namespace paceline
