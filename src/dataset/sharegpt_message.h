// The messages of ShareGPT's conversations: {"from": "human", "value": "..."}.
#pragma once

#include <vector>

#include "base/json_cursor.h"
#include "dataset/dataset_message.h"

namespace paceline {

// Whether a list of messages is of this shape, as its first one says.
bool is_sharegpt(const JsonCursor& messages);

// human (or user), gpt (or assistant and the names of other assistants), system, observation (or
// tool) and function_call, whose value is the JSON of {"name", "arguments"} or of a list of them.
// Throws Error invalid naming the field.
std::vector<DatasetMessage> read_sharegpt_messages(const JsonCursor& messages);

}  // namespace paceline
