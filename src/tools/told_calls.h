// Tool calls with chat templates that write none: the prompt explains to the model how to write
// them.
//
// The tools stand in the system message, a call is JSON between tags, and the results of calls come
// as the user's messages.
#pragma once

#include "paceline/chat_template.h"
#include "tools/turn_format.h"

namespace paceline {

// <tool_call>
// {"name": "find", "arguments": {"city": "Oslo"}}
// </tool_call>
CallFormat told_call_format();

// Whether the conversation has tools, calls or their results.
bool has_tools(const ChatInput& input);

// The same conversation for a template without calls: no tools, no calls, no role "tool". Where the
// template writes no system messages, the tools stand in the first user message. Error invalid when
// tools or messages aren't as OpenAI writes them.
ChatInput with_told_tools(const ChatInput& input, bool writes_system);

}  // namespace paceline
