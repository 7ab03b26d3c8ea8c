#include "protocol/anthropic_request.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "protocol/chat_messages.h"
#include "protocol/client_counters.h"
#include "protocol/request_reader.h"

namespace paceline::anthropic {
namespace {

constexpr std::string_view kBlockTypes[] = {"text", "thinking", "redacted_thinking", "tool_use",
                                            "tool_result"};

struct Block {
  std::string type;
  std::string text;  // or thinking
  std::string sealed;
  std::string id;  // of a call, also in its result
  std::string name;
  Json input = Json(Json::Object());
  std::optional<FieldValue> content;  // of a result
  bool is_error = false;
};

constexpr FieldType kResultContent =
    text_or_array_type<kAnyObject>("a string or an array of blocks");

constexpr FieldDef<Block> kBlockFields[] = {
    required("type", only_words_type(kBlockTypes),
             "text; of the assistant also thinking, redacted_thinking and tool_use; of the user "
             "also tool_result, in whose content a note is left for what isn't text.",
             store<&Block::type>),
    field("text", kAnyText, "The text.", store<&Block::text>),
    field("thinking", kAnyText, "What the assistant thought, for templates that show it.",
          store<&Block::text>),
    field("signature", kAnyText,
          "The reasoning as this server sealed it, which goes before thinking; one of another "
          "server counts for nothing.",
          store<&Block::sealed>),
    field("data", kAnyText,
          "The same of redacted_thinking, which is left out if another server sealed it.",
          store<&Block::sealed>),
    field("id", kAnyText, "Of tool_use: what its result refers to.", store<&Block::id>),
    field("name", kAnyText, "Of tool_use: the tool.", store<&Block::name>),
    field("input", kAnyObject, "Of tool_use: the call's arguments.", store<&Block::input>),
    field("tool_use_id", kAnyText, "Of tool_result: the call that it answers.", store<&Block::id>),
    field("content", kResultContent, "Of tool_result: a string, or blocks of text.",
          store<&Block::content>),
    field("is_error", kBoolean, "Of tool_result: true puts \"Error: \" in front of it.", kOff,
          store<&Block::is_error>),
};

constexpr KindNeed kNeeds[] = {
    {"text", {"text"}},
    {"thinking", {"thinking"}, "assistant"},
    {"redacted_thinking", {"data"}, "assistant"},
    {"tool_use", {"id", "name", "input"}, "assistant"},
    {"tool_result", {"tool_use_id"}, "user"},
};

Block read_block(const FieldValue& value, std::string_view role) {
  Block block = read_object<kBlockFields, FieldLevel::block>(value);
  const KindNeed& need = *find_need(kNeeds, block.type);
  if (!need.role.empty() && need.role != role) {
    value.member("type").refuse(
        fmt::format("text: only messages of the {} have {}", need.role, block.type));
  }
  require_members(value, need);
  return block;
}

std::string kept_text(std::string_view text, const FieldValue& of) {
  return std::string(of.terms().keep_client_counters ? text : without_countdown(text));
}

void add_line(std::optional<std::string>& text, std::string_view line) {
  if (text) *text += '\n';
  if (!text) text.emplace();
  *text += line;
}

// A content of texts, one a line; nothing where it has only client counters.
std::optional<std::string> read_texts(const FieldValue& value, std::string_view role) {
  std::optional<std::string> all;
  const auto add = [&](const std::string& text) {
    const std::string_view billed =
        role == "system" && !value.terms().keep_client_counters ? without_billing_line(text) : text;
    std::string kept = kept_text(billed, value);
    if (!kept.empty() || text.empty()) add_line(all, kept);
  };
  if (value.json().is_string()) {
    add(value.text());
  } else {
    for (const FieldValue& item : value.items()) add(read_block(item, role).text);
  }
  return all;
}

std::string read_result_block(const FieldValue& item, std::vector<std::string>& warnings) {
  const std::string* const type = item.json().find_text("type");
  if (type == nullptr || *type == "text") return read_block(item, "tool").text;
  return omission_note(item, *type, warnings);
}

std::string read_result(const Block& block, std::vector<std::string>& warnings) {
  std::string text;
  if (block.content) {
    text = joined_text(*block.content, "\n",
                       [&](const FieldValue& item) { return read_result_block(item, warnings); });
  }
  return block.is_error && !text.starts_with("Error") ? "Error: " + text : text;
}

// An answer's blocks are pieces of one turn: nothing stands between its texts.
void read_assistant(const FieldValue& content, History& history) {
  HistoryMessage message{.role = "assistant"};
  std::string& text = message.content.emplace();
  std::string reasoning;
  if (content.json().is_string()) {
    text = content.text();
  } else {
    for (const FieldValue& item : content.items()) {
      Block block = read_block(item, "assistant");
      if (block.type == "text") {
        text += block.text;
      } else if (block.type == "tool_use") {
        message.tool_calls.push_back({block.id, block.name, std::move(block.input)});
      } else {
        const auto& [seal, scope] = history.signatures;
        const auto opened = seal == nullptr ? std::nullopt : seal->open(block.sealed, scope);
        reasoning += opened.value_or(block.text);
      }
    }
  }
  if (!reasoning.empty()) message.reasoning_content = std::move(reasoning);
  history.is_answer_open = message.tool_calls.empty();
  history.messages.push_back(template_message(std::move(message)));
}

void read_user(const FieldValue& content, History& history) {
  std::optional<std::string> said;
  const auto flush = [&] {
    if (!said) return;
    history.messages.push_back({.role = "user", .content = *std::exchange(said, std::nullopt)});
  };
  if (content.json().is_string()) {
    said = read_texts(content, "user");
    return flush();
  }
  if (content.items().empty()) said.emplace();
  for (const FieldValue& item : content.items()) {
    const Block block = read_block(item, "user");
    if (block.type == "text") {
      const std::string kept = kept_text(block.text, item);
      if (!kept.empty() || block.text.empty()) add_line(said, kept);
      continue;
    }
    flush();
    history.messages.push_back(template_message({.role = "tool",
                                                 .content = read_result(block, history.warnings),
                                                 .tool_call_id = block.id}));
  }
  flush();
}

// One that begins the conversation belongs to the system prompt.
void read_instruction(const FieldValue& content, History& history) {
  const auto text = read_texts(content, "system");
  if (!text) return;
  auto& messages = history.messages;
  if (messages.empty()) return messages.push_back({.role = "system", .content = *text});
  if (messages.back().role == "system") {
    messages.back().content += "\n" + *text;
    return;
  }
  const std::string reminder = fmt::format("<system-reminder>\n{}\n</system-reminder>", *text);
  if (messages.back().role == "user") {
    messages.back().content += "\n" + reminder;
  } else {
    messages.push_back({.role = "user", .content = reminder});
  }
}

constexpr std::string_view kRoles[] = {"user", "assistant", "system"};

struct Message {
  std::string role;
  std::optional<FieldValue> content;
};

constexpr FieldDef<Message> kMessageFields[] = {
    required("role", word_type(kRoles), "Who speaks; the system may within the conversation, too.",
             store<&Message::role>),
    required("content", kContent, "A text, or blocks.", store<&Message::content>),
    ignored("clear_at", kAnyText, "Nothing is cleared out of a conversation."),
};

}  // namespace

FieldList block_fields() { return fields_of<kBlockFields, FieldLevel::block>(); }

FieldList message_fields() { return fields_of<kMessageFields>(); }

void read_system(const FieldValue& value, History& history) { read_instruction(value, history); }

void read_messages(const FieldValue& value, History& history) {
  for (const FieldValue& item : value.items()) {
    const auto message = read_object<kMessageFields>(item);
    history.is_answer_open = false;
    if (message.role == "assistant") {
      read_assistant(*message.content, history);
    } else if (message.role == "user") {
      read_user(*message.content, history);
    } else {
      read_instruction(*message.content, history);
    }
  }
}

}  // namespace paceline::anthropic
