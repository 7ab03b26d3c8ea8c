// Runs a chat at a terminal: reads lines, streams answers; Ctrl-C only stops an answer.
#pragma once

#include "cli/session.h"
#include "cli/settings.h"
#include "paceline/llm.h"

namespace paceline {

// Runs until /exit, Ctrl-D or SIGTERM. Returns the command's exit code.
int run_chat_terminal(LLM& llm, const Settings& settings, Session& session);

}  // namespace paceline
