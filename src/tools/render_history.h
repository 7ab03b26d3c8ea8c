// Renders conversations with chat templates that take them only in one order of roles.
#pragma once

#include <string>

#include "paceline/chat_template.h"

namespace paceline {

// What the template renders. Where it raises an error, or leaves out a text of the system, the user
// or a tool, or a call's arguments, the forms of tools/history_forms.h are tried, from the one that
// changes least; the first that leaves nothing out is rendered. Throws what ChatTemplate::render
// throws when the template takes none of them.
std::string render_history(const ChatTemplate& chat_template, const ChatInput& input);

}  // namespace paceline
