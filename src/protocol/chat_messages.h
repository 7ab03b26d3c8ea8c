// The messages of a chat request, as chat templates take them.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "paceline/chat_template.h"
#include "protocol/field_type.h"
#include "protocol/field_value.h"

namespace paceline {

struct HistoryCall {
  std::string id;
  std::string name;
  Json arguments = Json(Json::Object());
};

// A message of the conversation so far, whatever the API wrote it like.
struct HistoryMessage {
  std::string role;
  std::optional<std::string> content = {};
  std::optional<std::string> name = {};
  std::optional<std::string> tool_call_id = {};
  std::optional<std::string> reasoning_content = {};
  std::vector<HistoryCall> tool_calls = {};
};

// Models are trained on the arguments as an object; APIs have the object's JSON as a string. A
// string that isn't stays as it is: the call was cut off.
Json arguments_of(const std::string& json);

// As the templates of open models expect it.
ChatMessage template_message(HistoryMessage message);

// The text of a content that is a string, or parts, whose texts `read_part` returns.
template <class ReadPart>
std::string joined_text(const FieldValue& content, std::string_view between,
                        const ReadPart& read_part) {
  if (content.json().is_string()) return content.text();
  std::string all;
  bool is_first = true;
  for (const FieldValue& part : content.items()) {
    if (!std::exchange(is_first, false)) all += between;
    all += read_part(part);
  }
  return all;
}

// The members that an item, a block or a part of a kind must have.
struct KindNeed {
  std::string_view kind;
  std::array<std::string_view, 3> members;  // empty ones are none
  std::string_view role = {};               // of the messages that alone may have it; empty: any
};
// The row of a kind; null for one that the table doesn't have.
const KindNeed* find_need(std::span<const KindNeed> table, std::string_view kind);
// Throws RequestError for a member that is missing.
void require_members(const FieldValue& value, const KindNeed& need);

// The note that stands in a tool's result for a part that isn't text, and a warning of it: an agent
// can't take such a result back.
std::string omission_note(const FieldValue& part, std::string_view kind,
                          std::vector<std::string>& warnings);

// A content: a string, or parts.
FieldList content_part_fields();
inline constexpr FieldType kContentPart = object_type(content_part_fields);
inline constexpr FieldType kContent =
    text_or_array_type<kContentPart>("a string or an array of parts");

FieldList message_fields();
inline constexpr FieldType kMessage = object_type(message_fields);
inline constexpr FieldType kMessages = array_type(kMessage, 1, kNoMaximum);

// Converts messages to what the templates of open models expect: content in parts is joined with
// line breaks, missing content becomes an empty text, the JSON arguments of a call become an
// object, and the role developer becomes system. In a tool's result, a note stands for each part
// that isn't text, and a warning is added: an agent can't take such a result back.
std::vector<ChatMessage> read_messages(const FieldValue& value, std::vector<std::string>& warnings);

// The text of a content of text parts, which are joined with line breaks.
std::string read_content(const FieldValue& value);

// Throws RequestError for continue_final_message together with add_generation_prompt.
void check_continuation(const ChatInput& input);

// Unless the request sets the variable itself.
void add_template_variable(std::string_view name, Json value, ChatInput& input);

// Further variables of the template as JSON. Throws RequestError for a variable that the request
// itself sets.
std::string read_template_variables(const FieldValue& value);

}  // namespace paceline
