// The messages of a chat in a file of training data, checked and as chat templates take them.
#pragma once

#include <string>
#include <vector>

#include "base/json_cursor.h"

namespace paceline {

struct DatasetMessage {
  std::string role;
  Json::Object fields;    // with role and content
  bool is_learnt = true;  // OpenAI's "weight": 0 takes a turn out of LossTokens::assistant_turns
};

// OpenAI's message objects: `role`, `content` (a string, parts of text, or null beside tool_calls),
// `tool_calls`, `name`, `reasoning_content`, `weight`; other members go to the template as they
// are. As requests to the server are read, arguments of calls in a string become an object, missing
// content becomes an empty text and the role developer becomes system. Throws Error invalid naming
// the field.
std::vector<DatasetMessage> read_dataset_messages(const JsonCursor& messages);

// The tools of a line as a JSON array; empty when there are none.
std::string read_dataset_tools(const JsonCursor& line);

}  // namespace paceline
