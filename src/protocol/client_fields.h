// Fields that clients of OpenAI's API and of its relatives send, and that change no answer: a table
// says of each, at its level, why it is accepted, or that it is refused.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "protocol/field_info.h"
#include "protocol/request_reader.h"

namespace paceline {

enum class FieldLevel : uint8_t {
  request,  // any
  chat,     // a chat's request
  stream_options,
  message,
  part,  // of a content
  tool,
  tool_function,
  call,  // of a tool, in an assistant's message
  call_function,
  // Of Anthropic's API.
  messages,  // a request
  block,     // of a content
  custom_tool,
};

struct ClientField {};

// The table's rows of a level.
FieldTable<ClientField> client_fields(FieldLevel level);

// Checks the members that the rows of the level have.
void read_client_fields(FieldLevel level, RequestReader& reader);

void append_client_fields(FieldLevel level, FieldList& list);

// The object without members that are accepted and ignored at the level: no template shows them.
Json without_client_fields(const Json& object, FieldLevel level);

}  // namespace paceline
