// The messages of a chat in a file of training data, checked and as chat templates take them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_cursor.h"

namespace paceline {

struct DatasetMessage {
  std::string role;
  Json::Object fields;    // with role and content
  bool is_learnt = true;  // OpenAI's "weight": 0 takes a turn out of LossTokens::assistant_turns
};

DatasetMessage text_message(std::string_view role, std::string content);

// Adds {"name", "arguments"}, alone or inside "function", to the message's calls; arguments are an
// object, or the JSON of one in a string. Throws Error invalid naming the field.
void add_call(const JsonCursor& call, DatasetMessage& message);

// "weight", which is 0 or 1. Throws Error invalid for another number.
bool read_weight(const JsonCursor& weight);

// OpenAI's message objects: `role`, `content` (a string, parts of text, or null beside calls),
// `tool_calls` or the older `function_call`, `reasoning_content` (or `reasoning`), `refusal`,
// `name`, `weight`; other members go to the template as they are. As requests to the server are
// read, arguments of calls in a string become an object, missing content becomes an empty text or
// the refusal, and the role developer becomes system. Throws Error invalid naming the field.
std::vector<DatasetMessage> read_dataset_messages(const JsonCursor& messages);

}  // namespace paceline
