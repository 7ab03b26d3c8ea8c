#include "protocol/responses_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/request_error.h"
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
    required("type", only_words_type(kPartTypes),
             "A kind of text, or refusal; of others, in a tool's output, a note is left.",
             store<&Part::type>),
    field("text", kAnyText, "The text.", store<&Part::text>),
    field("refusal", kAnyText, "Why the assistant refused.", store<&Part::text>),
    ignored("logprobs", kAnyList, "Log-probabilities of an earlier answer."),
    ignored("image_url", "Images aren't read."),
    ignored("file_id", "Files aren't read."),
    ignored("file_url", "Files aren't read."),
    ignored("file_data", "Files aren't read."),
    ignored("filename", "Files aren't read."),
    ignored("detail", "Images and files aren't read."),
    ignored("input_audio", "Audio isn't read."),
};

constexpr FieldType kPart = object_type(fields_of<kPartFields, FieldLevel::part>);
constexpr FieldType kTexts = text_or_array_type<kPart>("a string or an array of parts");

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
    field("type", kAnyText,
          "message, function_call, function_call_output, custom_tool_call, "
          "custom_tool_call_output, reasoning, item_reference, compaction or compaction_trigger; "
          "calls of tools that OpenAI runs are left out.",
          {.by_default = "message"}, store<&Item::type>),
    field("role", word_type(kRoles), "Of a message: who speaks; developer is the same as system.",
          store<&Item::role>),
    field("content", kTexts, "Of a message: the text. Of reasoning: the reasoning.",
          store<&Item::content>),
    field("id", kAnyText, "Of item_reference: an item of a stored response.", store<&Item::id>),
    field("call_id", kAnyText, "Of a call: what its output refers to.", store<&Item::call_id>),
    field("name", kAnyText, "Of a call: the tool.", store<&Item::name>),
    field("arguments", kAnyText,
          "Of function_call: the JSON of an object; any other text counts as the beginning of one "
          "that was cut off.",
          store<&Item::text>),
    field("input", kAnyText, "Of custom_tool_call: the text that the tool gets.",
          store<&Item::text>),
    field("output", kTexts, "Of a call's output: what the tool answers.", store<&Item::content>),
    field("summary", kTexts, "Of reasoning: read where there is no content.",
          store<&Item::summary>),
    field("encrypted_content", kAnyText,
          "Of reasoning and compaction: the text as this server sealed it, which goes before the "
          "others.",
          store<&Item::sealed>),
    ignored("status", kAnyText, "How it ended."),
    ignored("namespace", kAnyText, "Of the tool."),
    ignored("caller", kAnyObject, "Who called."),
    ignored("async", kBoolean, "How it was called."),
    ignored("created_by", kAnyText, "Who made it."),
};

// Of tools that OpenAI's servers run, or that its models alone know: earlier answers may have them.
constexpr std::string_view kHostedKinds[] = {
    "apply_patch_call",
    "code_interpreter_call",
    "computer_call",
    "file_search_call",
    "image_generation_call",
    "local_shell_call",
    "mcp_",
    "program",
    "shell_call",
    "tool_search_",
    "web_search_call",
};

std::string read_part(const FieldValue& value, bool is_output, ItemHistory& conversation) {
  auto part = read_object<kPartFields, FieldLevel::part>(value);
  if (part.type == "refusal" || part.type.ends_with("text")) {
    RequestReader(value).require(part.type == "refusal" ? "refusal" : "text");
    return std::move(part.text);
  }
  if (!is_output) value.member("type").refuse_unsupported("text");
  return omission_note(value, part.type, conversation.warnings);
}

std::string read_texts(const FieldValue& value, std::string_view between, bool is_output,
                       ItemHistory& conversation) {
  return joined_text(value, between, [&](const FieldValue& part) {
    return read_part(part, is_output, conversation);
  });
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

void add_message(const FieldValue& /*value*/, const Item& item, ItemHistory& conversation) {
  const bool is_answer = item.role == "assistant";
  std::string text = read_texts(*item.content, is_answer ? "" : "\n", false, conversation);
  if (item.role == "user") return add_user_text(std::move(text), conversation);
  if (!is_answer) return add_system_text(std::move(text), conversation);
  end_summary(conversation);
  const auto& answer = conversation.answer;
  if (answer && (answer->content || !answer->tool_calls.empty())) end_answer(conversation);
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
  throw invalid_field(value.at().name_of("encrypted_content"),
                      "not a value that this server sealed for this key");
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
  if (answer && (answer->content || !answer->tool_calls.empty())) end_answer(conversation);
  if (!text || text->empty()) return;
  auto& reasoning = open_answer(conversation).reasoning_content;
  reasoning = reasoning ? *reasoning + "\n\n" + *text : std::move(*text);
}

void add_call(const FieldValue& /*value*/, const Item& item, ItemHistory& conversation) {
  end_summary(conversation);
  open_answer(conversation)
      .tool_calls.push_back({item.call_id, item.name,
                             item.type == "custom_tool_call" ? Json::Object{{"input", item.text}}
                                                             : arguments_of(item.text)});
}

void add_output(const FieldValue& /*value*/, const Item& item, ItemHistory& conversation) {
  std::string text = read_texts(*item.content, "\n", true, conversation);
  end_answer(conversation);
  end_summary(conversation);
  conversation.messages.push_back(
      template_message({.role = "tool", .content = std::move(text), .tool_call_id = item.call_id}));
}

void add_compaction(const FieldValue& value, const Item& item, ItemHistory& conversation) {
  end_answer(conversation);
  end_summary(conversation);
  conversation.summary =
      open_sealed(value, item, kCompactionPurpose, conversation.sources).value_or("");
}

void ask_for_compaction(const FieldValue& /*value*/, const Item& /*item*/,
                        ItemHistory& conversation) {
  conversation.asks_for_compaction = true;
}

struct ItemKind {
  KindNeed need;
  void (*add)(const FieldValue& value, const Item& item, ItemHistory& conversation);
};

constexpr ItemKind kItemKinds[] = {
    {{"message", {"role", "content"}}, add_message},
    {{"function_call", {"call_id", "name", "arguments"}}, add_call},
    {{"custom_tool_call", {"call_id", "name", "input"}}, add_call},
    {{"function_call_output", {"call_id", "output"}}, add_output},
    {{"custom_tool_call_output", {"call_id", "output"}}, add_output},
    {{"reasoning", {}}, add_reasoning},
    {{"item_reference", {"id"}}, nullptr},  // an item of these kinds stands for it
    {{"compaction", {"encrypted_content"}}, add_compaction},
    {{"compaction_trigger", {}}, ask_for_compaction},
};

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
      const std::string* const known = item.find_text("id");
      if (known != nullptr && *known == id) return item;
    }
  }
  return std::nullopt;
}

// True: the item is of a hosted tool.
bool skip_hosted(const FieldValue& value, ItemHistory& conversation) {
  const std::string* const type = value.json().find_text("type");
  if (type == nullptr || !begins_like(*type, kHostedKinds)) return false;
  conversation.warnings.push_back(
      fmt::format("{}: {} left out, its tool isn't this server's", value.path(), *type));
  return true;
}

void read_item(const FieldValue& value, ItemHistory& conversation) {
  if (conversation.asks_for_compaction) {
    throw invalid_field(value.path(), "nothing may follow the compaction_trigger");
  }
  if (skip_hosted(value, conversation)) return;
  const auto item = read_object<kItemFields, FieldLevel::message>(value);
  const auto* const kind =
      std::find_if(std::begin(kItemKinds), std::end(kItemKinds),
                   [&](const ItemKind& one) { return one.need.kind == item.type; });
  if (kind == std::end(kItemKinds)) {
    value.member("type").refuse_unsupported(
        "message, calls of functions and custom tools, their outputs, reasoning, item_reference "
        "and compaction");
  }
  require_members(value, kind->need);
  if (kind->add != nullptr) {
    if (item.type != "compaction_trigger") conversation.items.push_back(value.json());
    return kind->add(value, item, conversation);
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
  FieldList list = fields_of<kItemFields>();
  append_missing_fields(list_fields(client_fields(FieldLevel::message)), list);
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
  Json::Object part{{"type", "input_text"}, {"text", value.json()}};
  conversation.items.push_back(Json::Object{
      {"type", "message"}, {"role", "user"}, {"content", Json::Array{std::move(part)}}});
  add_user_text(value.text(), conversation);
}

void finish_conversation(ItemHistory& conversation) {
  end_answer(conversation);
  end_summary(conversation);
  // A client's probe has no input.
  if (conversation.messages.empty()) add_user_text({}, conversation);
}

}  // namespace paceline::responses
