// The tools of a conversation in a file of training data.
#pragma once

#include <string>

#include "base/json_cursor.h"

namespace paceline {

// A line's `tools`, an array or the JSON of one in a string, or OpenAI's older `functions`, as the
// JSON array that requests to the server have; empty when there are none. A function that stands
// bare ({"name", "parameters"}) gets its wrapper. Throws Error invalid naming the field.
std::string read_dataset_tools(const JsonCursor& line);

}  // namespace paceline
