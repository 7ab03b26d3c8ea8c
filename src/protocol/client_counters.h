// Client counters are what Claude Code writes into its prompts for Anthropic's servers and changes
// with each request, so that no prompt would begin as the one before: a billing line at the head of
// the system prompt, and a countdown of tokens after the user's texts and the tools' results.
#pragma once

#include <string_view>

namespace paceline {

// A text of the system prompt without "x-anthropic-billing-header: ..." in its first line.
std::string_view without_billing_line(std::string_view text);

// The text without "<total_tokens>N tokens left</total_tokens>" at its end, which may stand in
// <system-reminder>. One in the middle of a text stays.
std::string_view without_countdown(std::string_view text);

}  // namespace paceline
