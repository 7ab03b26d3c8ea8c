// responses::Request is the body of POST /v1/responses, and of /compact and /input_tokens beneath
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"
#include "protocol/dialect.h"

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

// The conversation in the making: items, of this request and of stored ones, become the messages of
// a chat.
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
inline constexpr FieldType kInput = text_or_array_type<kItem>("a string or an array of items");

// In this order; instructions stand in front of all that was said. Each throws RequestError naming
// the item at fault.
void read_instructions(const FieldValue& value, ItemHistory& conversation);
void read_previous_response(const FieldValue& value, ItemHistory& conversation);
void read_input(const FieldValue& value, ItemHistory& conversation);
void finish_conversation(ItemHistory& conversation);

// Functions, custom tools (functions of one text) and hosted ones, which are left out.
struct OfferedTools {
  std::vector<std::string> custom;  // names
  std::vector<std::string> hosted;  // kinds that were left out
};

FieldList tool_fields();
inline constexpr FieldType kTool = object_type(tool_fields);
inline constexpr FieldType kTools = array_type(kTool, 0, kMaxTools);

FieldList tool_choice_fields();
inline constexpr FieldType kToolChoiceKinds[] = {word_type(kToolChoiceWords),
                                                 object_type(tool_choice_fields)};
inline constexpr FieldType kToolChoice =
    one_of_type(kToolChoiceKinds, "none, auto, required, or an object that names tools");

// Adds the tools to the chat, and a warning for each hosted one. Throws RequestError.
void read_tools(const FieldValue& value, ChatRequest& chat, OfferedTools& offered);
// After the tools. Throws RequestError for one that is left out or isn't there.
void read_tool_choice(const FieldValue& value, const OfferedTools& offered, TurnRequest& turn);

struct Request {
  ChatRequest chat;  // as the same conversation over /v1/chat/completions would be
  ItemHistory conversation;
  OfferedTools tools;
  std::string echo;  // the members that an answer has of its request: JSON without braces
  bool is_stored = true;
  bool is_background = false;
  bool seals_reasoning = false;
  bool summarises_reasoning = false;  // reasoning stands in the summary of its item
};

// The prompt that makes the served model summarise a conversation.
extern const std::string_view kCompactionPrompt;

// Throw RequestError naming the first field that is wrong, unknown or not supported.
Request parse_request(const Json& body, const CallTerms& terms);
// The fields that make the prompt, of a request that asks for its tokens or its compaction.
Request parse_prompt(const Json& body, const CallTerms& terms);
// The same, whose chat asks for a summary of what stands in it.
Request parse_compaction(const Json& body, const CallTerms& terms);

FieldList request_fields();
FieldList prompt_fields();

}  // namespace paceline::responses
