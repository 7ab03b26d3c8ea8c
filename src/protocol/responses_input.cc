#include "protocol/responses_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "protocol/client_fields.h"
#include "protocol/request_reader.h"

namespace paceline::responses {
namespace {

constexpr std::string_view kPartTypes[] = {
    "input_text", "output_text", "text",       "summary_text", "reasoning_text",
    "refusal",    "input_image", "input_file", "input_audio",  "computer_screenshot"};

struct Part {
  std::string type;
  std::string text;
};

constexpr FieldDef<Part> kPartFields[] = {
    {.name = "type",
     .type = only_words_type(kPartTypes),
     .is_required = true,
     .help = "A kind of text, or refusal; of others, in a tool's output, a note is left.",
     .read = store<&Part::type>},
    {.name = "text", .type = kAnyText, .help = "The text.", .read = store<&Part::text>},
    {.name = "refusal",
     .type = kAnyText,
     .help = "Why the assistant refused.",
     .read = store<&Part::text>},
    {.name = "logprobs",
     .type = {.kind = FieldKind::array},
     .use = FieldUse::accepted,
     .help = "Log-probabilities of an earlier answer."},
    {.name = "image_url", .use = FieldUse::accepted, .help = "Images aren't read."},
    {.name = "file_id", .use = FieldUse::accepted, .help = "Files aren't read."},
    {.name = "file_url", .use = FieldUse::accepted, .help = "Files aren't read."},
    {.name = "file_data", .use = FieldUse::accepted, .help = "Files aren't read."},
    {.name = "filename", .use = FieldUse::accepted, .help = "Files aren't read."},
    {.name = "detail", .use = FieldUse::accepted, .help = "Images and files aren't read."},
    {.name = "input_audio", .use = FieldUse::accepted, .help = "Audio isn't read."},
};

FieldList part_fields() {
  FieldList list = list_fields<Part>(kPartFields);
  append_client_fields(FieldLevel::part, list);
  return list;
}

constexpr FieldType kPart = object_type(part_fields);
constexpr FieldType kTextKinds[] = {kAnyText, array_type(kPart, 0, kNoMaximum)};
constexpr FieldType kTexts = one_of_type(kTextKinds, "a string or an array of parts");

struct Item {
  std::string type = "message";
  std::string role;
  std::string id;
  std::string call_id;
  std::string name;
  std::string text;  // arguments or input of a call
  std::string sealed;
  std::optional<FieldValue> content;  // or a tool's output
  std::optional<FieldValue> summary;
};

constexpr std::string_view kRoles[] = {"user", "assistant", "system", "developer"};

constexpr FieldDef<Item> kItemFields[] = {
    {.name = "type",
     .type = kAnyText,
     .by_default = std::string_view("message"),
     .help = "message, function_call, function_call_output, custom_tool_call, "
             "custom_tool_call_output, reasoning, item_reference, compaction or "
             "compaction_trigger; calls of tools that OpenAI runs are left out.",
     .read = store<&Item::type>},
    {.name = "role",
     .type = word_type(kRoles),
     .help = "Of a message: who speaks; developer is the same as system.",
     .read = store<&Item::role>},
    {.name = "content",
     .type = kTexts,
     .help = "Of a message: the text. Of reasoning: the reasoning.",
     .read = store<&Item::content>},
    {.name = "id",
     .type = kAnyText,
     .help = "Of item_reference: an item of a stored response.",
     .read = store<&Item::id>},
    {.name = "call_id",
     .type = kAnyText,
     .help = "Of a call: what its output refers to.",
     .read = store<&Item::call_id>},
    {.name = "name", .type = kAnyText, .help = "Of a call: the tool.", .read = store<&Item::name>},
    {.name = "arguments",
     .type = kAnyText,
     .help = "Of function_call: the JSON of an object; any other text counts as the beginning of "
             "one that was cut off.",
     .read = store<&Item::text>},
    {.name = "input",
     .type = kAnyText,
     .help = "Of custom_tool_call: the text that the tool gets.",
     .read = store<&Item::text>},
    {.name = "output",
     .type = kTexts,
     .help = "Of a call's output: what the tool answers.",
     .read = store<&Item::content>},
    {.name = "summary",
     .type = kTexts,
     .help = "Of reasoning: read where there is no content.",
     .read = store<&Item::summary>},
    {.name = "encrypted_content",
     .type = kAnyText,
     .help = "Of reasoning and compaction: the text as this server sealed it, which goes before "
             "the others.",
     .read = store<&Item::sealed>},
    {.name = "status", .type = kAnyText, .use = FieldUse::accepted, .help = "How it ended."},
    {.name = "namespace", .type = kAnyText, .use = FieldUse::accepted, .help = "Of the tool."},
    {.name = "caller", .type = kAnyObject, .use = FieldUse::accepted, .help = "Who called."},
    {.name = "async", .type = kBoolean, .use = FieldUse::accepted, .help = "How it was called."},
    {.name = "created_by", .type = kAnyText, .use = FieldUse::accepted, .help = "Who made it."},
};

struct ItemNeed {
  std::string_view type;
  std::array<std::string_view, 3> members;
};

constexpr ItemNeed kNeeds[] = {
    {"message", {"role", "content"}},
    {"function_call", {"call_id", "name", "arguments"}},
    {"custom_tool_call", {"call_id", "name", "input"}},
    {"function_call_output", {"call_id", "output"}},
    {"custom_tool_call_output", {"call_id", "output"}},
    {"reasoning", {}},
    {"item_reference", {"id"}},
    {"compaction", {"encrypted_content"}},
    {"compaction_trigger", {}},
};

// Of tools that OpenAI's servers run, or that its models alone know: earlier answers may have them.
bool is_of_hosted_tool(std::string_view type) {
  constexpr std::string_view kKinds[] = {"apply_patch_call",
                                         "code_interpreter_call",
                                         "computer_call",
                                         "file_search_call",
                                         "image_generation_call",
                                         "local_shell_call",
                                         "mcp_",
                                         "program",
                                         "shell_call",
                                         "tool_search_",
                                         "web_search_call"};
  return std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](std::string_view kind) { return type.starts_with(kind); });
}

// A note stands for what the model can't read in a tool's output: an agent can't take it back.
std::string read_part(const FieldValue& value, bool is_output, ItemHistory& conversation) {
  Part part;
  RequestReader reader(value);
  reader.read<Part>(kPartFields, part);
  read_client_fields(FieldLevel::part, reader);
  reader.finish();
  if (part.type == "refusal" || part.type.ends_with("text")) {
    reader.require(part.type == "refusal" ? "refusal" : "text");
    return std::move(part.text);
  }
  if (!is_output) {
    FieldValue(*value.at().find("type"), value.terms()).refuse_unsupported("text");
  }
  conversation.warnings.push_back(
      fmt::format("{}: {} left out, the model reads text only", value.path(), part.type));
  return fmt::format("[{} omitted: the model reads text only]", part.type);
}

std::string read_texts(const FieldValue& value, std::string_view between, bool is_output,
                       ItemHistory& conversation) {
  if (value.json().is_string()) return value.text();
  std::string all;
  bool is_first = true;
  for (const FieldValue& part : value.items()) {
    if (!std::exchange(is_first, false)) all += between;
    all += read_part(part, is_output, conversation);
  }
  return all;
}

void end_answer(ItemHistory& conversation) {
  if (!conversation.answer) return;
  conversation.messages.push_back(template_message(std::move(*conversation.answer)));
  conversation.answer.reset();
}

HistoryMessage& open_answer(ItemHistory& conversation) {
  if (!conversation.answer) conversation.answer = HistoryMessage{.role = "assistant"};
  return *conversation.answer;
}

void add_user_text(std::string text, ItemHistory& conversation) {
  end_answer(conversation);
  if (!conversation.summary.empty()) {
    text = std::exchange(conversation.summary, {}) + (text.empty() ? "" : "\n\n") + text;
  }
  conversation.messages.push_back({.role = "user", .content = std::move(text)});
}

void end_summary(ItemHistory& conversation) {
  if (!conversation.summary.empty()) add_user_text({}, conversation);
}

// What stands in front of the conversation is one message: templates take one system message.
void add_system_text(std::string text, ItemHistory& conversation) {
  end_answer(conversation);
  auto& messages = conversation.messages;
  if (messages.size() == 1 && messages[0].role == "system" && conversation.summary.empty()) {
    messages[0].content += "\n\n" + text;
    return;
  }
  end_summary(conversation);
  messages.push_back({.role = "system", .content = std::move(text)});
}

void add_message(const Item& item, ItemHistory& conversation) {
  const bool is_answer = item.role == "assistant";
  std::string text = read_texts(*item.content, is_answer ? "" : "\n", false, conversation);
  if (item.role == "user") return add_user_text(std::move(text), conversation);
  if (!is_answer) return add_system_text(std::move(text), conversation);
  end_summary(conversation);
  const auto& answer = conversation.answer;
  if (answer && (answer->content || answer->tool_calls)) end_answer(conversation);
  open_answer(conversation).content = std::move(text);
}

std::optional<std::string> open_sealed(const FieldValue& value, const Item& item,
                                       std::string_view purpose, const InputSources& sources) {
  if (item.sealed.empty()) return std::nullopt;
  std::optional<std::string> text;
  if (sources.seal != nullptr) {
    text = sources.seal->open(item.sealed, {.purpose = purpose, .owner = sources.owner});
  }
  if (text) return text;
  const std::string path = value.at().name_of("encrypted_content");
  throw RequestError(path, ErrorReason::invalid_value,
                     path + ": not a value that this server sealed for this key");
}

void add_reasoning(const FieldValue& value, const Item& item, ItemHistory& conversation) {
  std::optional<std::string> text =
      open_sealed(value, item, kReasoningPurpose, conversation.sources);
  if (!text && item.content) text = read_texts(*item.content, "\n", false, conversation);
  if ((!text || text->empty()) && item.summary) {
    text = read_texts(*item.summary, "\n\n", false, conversation);
  }
  end_summary(conversation);
  const auto& answer = conversation.answer;
  if (answer && (answer->content || answer->tool_calls)) end_answer(conversation);
  if (!text || text->empty()) return;
  auto& reasoning = open_answer(conversation).reasoning_content;
  reasoning = reasoning ? *reasoning + "\n\n" + *text : std::move(*text);
}

// Arguments that aren't an object were cut off.
Json arguments_of(const FieldValue& value, const Item& item) {
  if (item.type == "custom_tool_call") return Json(Json::Object{{"input", Json(item.text)}});
  if (item.text.empty()) return Json(Json::Object());
  try {
    Json arguments = parse_json(item.text, value.path());
    if (arguments.is_object()) return arguments;
  } catch (const Error&) {
  }
  return Json(item.text);
}

void add_call(const FieldValue& value, const Item& item, ItemHistory& conversation) {
  end_summary(conversation);
  auto& calls = open_answer(conversation).tool_calls;
  if (!calls) calls.emplace();
  calls->push_back(history_call(item.call_id, item.name, arguments_of(value, item)));
}

void add_output(const Item& item, ItemHistory& conversation) {
  std::string text = read_texts(*item.content, "\n", true, conversation);
  end_answer(conversation);
  end_summary(conversation);
  conversation.messages.push_back(template_message({.role = "tool",
                                                    .content = std::move(text),
                                                    .name = {},
                                                    .tool_call_id = item.call_id,
                                                    .reasoning_content = {},
                                                    .tool_calls = {}}));
}

void add_compaction(const FieldValue& value, const Item& item, ItemHistory& conversation) {
  end_answer(conversation);
  end_summary(conversation);
  conversation.summary =
      open_sealed(value, item, kCompactionPurpose, conversation.sources).value_or("");
}

void check_item(const FieldValue& value, const RequestReader& reader, std::string_view type) {
  const auto* const need = std::find_if(std::begin(kNeeds), std::end(kNeeds),
                                        [&](const ItemNeed& one) { return one.type == type; });
  if (need == std::end(kNeeds)) {
    FieldValue(*value.at().find("type"), value.terms())
        .refuse_unsupported(
            "message, calls of functions and custom tools, their outputs, "
            "reasoning, item_reference and compaction");
  }
  for (const std::string_view member : need->members) {
    if (!member.empty()) reader.require(member);
  }
}

void add_item(const FieldValue& value, const Item& item, ItemHistory& conversation) {
  if (item.type == "message") {
    add_message(item, conversation);
  } else if (item.type == "reasoning") {
    add_reasoning(value, item, conversation);
  } else if (item.type == "compaction") {
    add_compaction(value, item, conversation);
  } else if (item.type == "compaction_trigger") {
    conversation.asks_for_compaction = true;
  } else if (item.type.ends_with("_output")) {
    add_output(item, conversation);
  } else {
    add_call(value, item, conversation);
  }
}

// Ids of items are "KIND_RESPONSE_NUMBER".
std::optional<Json> find_item(const std::string& id, const InputSources& sources) {
  const size_t begin = id.find('_');
  const size_t end = id.rfind('_');
  if (sources.store == nullptr || begin == end) return std::nullopt;
  const auto stored = sources.store->find(sources.owner, "resp" + id.substr(begin, end - begin));
  if (stored == nullptr || stored->context.empty()) return std::nullopt;
  for (const StoredText& text : {stored->input, stored->context.back()}) {
    const Json items = parse_json(*text, "the stored items");
    for (const Json& item : *items.array()) {
      const Json* const known = item.find_value("id");
      if (known != nullptr && known->is_string() && *known->string() == id) return item;
    }
  }
  return std::nullopt;
}

// True: the item was taken as it stands.
bool skip_hosted(const FieldValue& value, ItemHistory& conversation) {
  const auto type = value.at().find("type");
  if (!type || !type->is_string() || !is_of_hosted_tool(type->string())) return false;
  conversation.warnings.push_back(
      fmt::format("{}: {} left out, its tool isn't this server's", value.path(), type->string()));
  return true;
}

void read_item(const FieldValue& value, ItemHistory& conversation) {
  if (conversation.asks_for_compaction) {
    throw RequestError(value.path(), ErrorReason::invalid_value,
                       value.path() + ": nothing may follow the compaction_trigger");
  }
  if (skip_hosted(value, conversation)) return;
  Item item;
  RequestReader reader(value);
  reader.read<Item>(kItemFields, item);
  read_client_fields(FieldLevel::message, reader);
  reader.finish();
  check_item(value, reader, item.type);
  if (item.type != "item_reference") {
    if (item.type != "compaction_trigger") conversation.items.push_back(value.json());
    return add_item(value, item, conversation);
  }
  const auto found = find_item(item.id, conversation.sources);
  if (!found) {
    const std::string path = value.at().name_of("id");
    throw RequestError(
        path, ErrorReason::response_not_found,
        fmt::format("{}: no item of a stored response has the id {}", path, shown_text(item.id)));
  }
  read_item(FieldValue(JsonCursor(*found, value.path()), value.terms()), conversation);
}

}  // namespace

FieldList item_fields() {
  FieldList list = list_fields<Item>(kItemFields);
  FieldList others;
  append_client_fields(FieldLevel::message, others);
  for (const FieldInfo& other : others) {
    const auto is_same = [&](const FieldInfo& one) { return one.name == other.name; };
    if (std::none_of(list.begin(), list.end(), is_same)) list.push_back(other);
  }
  return list;
}

void read_instructions(const FieldValue& value, ItemHistory& conversation) {
  if (!value.text().empty()) add_system_text(value.text(), conversation);
}

void read_previous_response(const FieldValue& value, ItemHistory& conversation) {
  const auto& [seal, store, owner] = conversation.sources;
  const auto stored = store == nullptr ? nullptr : store->find(owner, value.text());
  if (stored == nullptr || stored->context.empty()) {
    throw RequestError(value.path(), ErrorReason::response_not_found,
                       fmt::format("{}: no finished response has the id {}", value.path(),
                                   shown_text(value.text())));
  }
  conversation.earlier = stored->context;
  for (const StoredText& text : stored->context) {
    const Json items = parse_json(*text, value.path());
    for (const Json& item : *items.array()) {
      read_item(FieldValue(JsonCursor(item, value.path()), value.terms()), conversation);
    }
  }
  conversation.items.clear();
}

void read_input(const FieldValue& value, ItemHistory& conversation) {
  if (!value.json().is_string()) {
    for (const FieldValue& item : value.items()) read_item(item, conversation);
    return;
  }
  Json::Object part{{"type", Json(std::string("input_text"))}, {"text", value.json()}};
  conversation.items.push_back(Json(Json::Object{{"type", Json(std::string("message"))},
                                                 {"role", Json(std::string("user"))},
                                                 {"content", Json(Json::Array{Json(part)})}}));
  add_user_text(value.text(), conversation);
}

void finish_conversation(ItemHistory& conversation) {
  end_answer(conversation);
  end_summary(conversation);
  // A client's probe has no input.
  if (conversation.messages.empty()) add_user_text({}, conversation);
}

}  // namespace paceline::responses
