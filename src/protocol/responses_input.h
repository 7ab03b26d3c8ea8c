// The input of the Responses API: items, of this request and of stored ones, become the messages of
// a chat.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "protocol/chat_messages.h"
#include "protocol/response_store.h"
#include "protocol/seal.h"

namespace paceline::responses {

// What values are sealed for.
inline constexpr std::string_view kReasoningPurpose = "reasoning";
inline constexpr std::string_view kCompactionPurpose = "compaction";

// What items may refer to.
struct InputSources {
  const Seal* seal = nullptr;      // null: nothing opens
  ResponseStore* store = nullptr;  // null: nothing is found
  std::string owner = {};
};

struct ItemHistory {
  InputSources sources;
  std::vector<StoredText> earlier = {};  // items of the responses that it goes on from
  Json::Array items = {};                // of this request; an item in the place of a reference
  std::vector<ChatMessage> messages = {};
  std::vector<std::string> warnings = {};
  bool asks_for_compaction = false;  // its last item does

  // The assistant's message that further items may belong to, and a summary that the next message
  // of the user begins with.
  std::optional<HistoryMessage> answer = {};
  std::string summary = {};
};

FieldList item_fields();
inline constexpr FieldType kItem = object_type(item_fields);
inline constexpr FieldType kInputKinds[] = {kAnyText, array_type(kItem, 0, kNoMaximum)};
inline constexpr FieldType kInput = one_of_type(kInputKinds, "a string or an array of items");

// In this order; instructions stand in front of all that was said. Each throws RequestError naming
// the item at fault.
void read_instructions(const FieldValue& value, ItemHistory& conversation);
void read_previous_response(const FieldValue& value, ItemHistory& conversation);
void read_input(const FieldValue& value, ItemHistory& conversation);
void finish_conversation(ItemHistory& conversation);

}  // namespace paceline::responses
