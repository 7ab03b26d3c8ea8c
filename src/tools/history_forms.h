// Conversations as chat templates take them that want the roles in one order.
#pragma once

#include <vector>

#include "base/json.h"

namespace paceline {

using Messages = std::vector<Json>;

// System messages at the beginning become one. A later one becomes a message of the user in its
// place, or after the results of the calls that it stands between. So does a result without a
// call.
Messages with_one_system_message(const Messages& messages);

// The user and the assistant take turns, and the user begins: neighbours of one role become one
// message, an empty answer is left out, and where a turn is missing stands an empty one.
Messages with_turns_in_order(const Messages& messages);

// The system message stands before the user's first text.
Messages without_system_message(const Messages& messages);

// The empty content of messages of calls is null.
Messages with_null_contents(const Messages& messages);

// Each call has a message of its own, with its result after it.
Messages with_single_calls(const Messages& messages);

}  // namespace paceline
