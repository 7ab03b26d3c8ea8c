// Derives a model's TurnFormat from its chat template, by rendering conversations and comparing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "paceline/chat_template.h"
#include "tools/turn_format.h"

namespace paceline {

// Renders the template at most a few hundred times, each within the limits of a rendering; the
// result depends on the template and `special_tokens` (its variables, as bos_token) alone. Never
// throws because of the template: TurnFormat says what couldn't be found out.
TurnFormat derive_turn_format(
    const ChatTemplate& chat_template,
    const std::vector<std::pair<std::string, std::string>>& special_tokens = {});

}  // namespace paceline
