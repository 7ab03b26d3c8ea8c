#include "protocol/decision_input.h"

#include <fmt/format.h>

#include <map>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "protocol/client_fields.h"
#include "protocol/request_reader.h"

namespace paceline {
namespace {

constexpr FieldType kJsonData = one_of_type(kCriteriaKinds, "an object or an array of objects");
constexpr std::string_view kPartWords[] = {"input_text", "input_json", "output_text", "refusal"};
constexpr std::string_view kItemWords[] = {"message", "function_call", "function_call_output",
                                           "custom_tool_call", "custom_tool_call_output"};
constexpr std::string_view kDecisionRoles[] = {"user", "developer", "system", "assistant"};

struct DecisionPart {
  std::string type;
  std::optional<std::string> text;
};

void take_decision_text(const FieldValue& value, DecisionPart& part) { part.text = value.text(); }

constexpr FieldDef<DecisionPart> kDecisionPartFields[] = {
    {.name = "type",
     .type = only_words_type(kPartWords),
     .is_required = true,
     .help = "input_text, input_json, output_text or refusal.",
     .read = [](const FieldValue& v, DecisionPart& t) { t.type = v.text(); }},
    {.name = "text", .type = kAnyText, .help = "Of a text.", .read = take_decision_text},
    {.name = "refusal", .type = kAnyText, .help = "Of a refusal.", .read = take_decision_text},
    {.name = "data",
     .type = kJsonData,
     .help = "Of input_json.",
     .read = [](const FieldValue& v, DecisionPart& t) { t.text = to_json(v.json()); }},
};

std::string decision_part_text(const FieldValue& value) {
  DecisionPart part;
  RequestReader reader(value);
  reader.read<DecisionPart>(kDecisionPartFields, part);
  read_client_fields(FieldLevel::part, reader);
  reader.finish();
  std::string_view member = "text";
  if (part.type == "input_json") member = "data";
  if (part.type == "refusal") member = "refusal";
  reader.require(member);
  return *part.text;
}

struct DecisionItem {
  std::string type = "message";
  std::string role;
  std::string text;  // of a message, a call or an output
  std::string name;
  std::string call_id;
};

void take_item_content(const FieldValue& value, DecisionItem& item) {
  item.text = read_decision_text(value);
}

constexpr FieldDef<DecisionItem> kDecisionItemFields[] = {
    {.name = "type",
     .type = word_type(kItemWords),
     .by_default = std::string_view("message"),
     .help = "message, function_call, function_call_output, custom_tool_call or "
             "custom_tool_call_output.",
     .read = [](const FieldValue& v, DecisionItem& t) { t.type = v.text(); }},
    {.name = "role",
     .type = word_type(kDecisionRoles),
     .help = "Of a message.",
     .read = [](const FieldValue& v, DecisionItem& t) { t.role = v.text(); }},
    {.name = "content", .type = kDecisionText, .help = "Of a message.", .read = take_item_content},
    {.name = "name",
     .type = kAnyText,
     .help = "Of a call.",
     .read = [](const FieldValue& v, DecisionItem& t) { t.name = v.text(); }},
    {.name = "arguments",
     .type = kAnyText,
     .help = "Of a function call.",
     .read = [](const FieldValue& v, DecisionItem& t) { t.text = v.text(); }},
    {.name = "input",
     .type = kAnyText,
     .help = "Of a custom tool's call.",
     .read = [](const FieldValue& v, DecisionItem& t) { t.text = v.text(); }},
    {.name = "output", .type = kDecisionText, .help = "Of a call.", .read = take_item_content},
    {.name = "call_id",
     .type = kAnyText,
     .help = "Of a call and of its output.",
     .read = [](const FieldValue& v, DecisionItem& t) { t.call_id = v.text(); }},
    {.name = "status", .type = kAnyText, .use = FieldUse::accepted, .help = "Items are complete."},
    {.name = "namespace",
     .type = kAnyText,
     .use = FieldUse::accepted,
     .help = "Calls are known by their names."},
};

// The members that an item of the type must have.
std::vector<std::string_view> required_members(std::string_view type) {
  if (type == "message") return {"role", "content"};
  if (type == "function_call") return {"name", "call_id", "arguments"};
  if (type == "custom_tool_call") return {"name", "call_id", "input"};
  return {"call_id", "output"};
}

DecisionItem read_decision_item(const FieldValue& value) {
  DecisionItem item;
  RequestReader reader(value);
  reader.read<DecisionItem>(kDecisionItemFields, item);
  read_client_fields(FieldLevel::message, reader);
  reader.finish();
  for (const std::string_view member : required_members(item.type)) reader.require(member);
  return item;
}

}  // namespace

FieldList decision_part_fields() {
  FieldList list = list_fields<DecisionPart>(kDecisionPartFields);
  append_client_fields(FieldLevel::part, list);
  return list;
}

FieldList decision_item_fields() {
  FieldList list = list_fields<DecisionItem>(kDecisionItemFields);
  append_client_fields(FieldLevel::message, list);
  return list;
}

std::string read_decision_text(const FieldValue& value) {
  if (value.json().is_string()) return value.text();
  std::string text;
  for (const FieldValue& part : value.items()) {
    if (!text.empty()) text += "\n";
    text += decision_part_text(part);
  }
  return text;
}

std::string read_decision_input(const FieldValue& value) {
  if (value.json().is_string()) return value.text();
  const std::vector<FieldValue> items = value.items();
  std::map<std::string, std::string> called;  // names by call_id
  std::string text;
  for (const FieldValue& one : items) {
    const DecisionItem item = read_decision_item(one);
    if (items.size() == 1 && item.role == "user") return item.text;
    if (!text.empty()) text += "\n\n";
    if (item.type == "message") {
      text += fmt::format("{}:\n{}", item.role, item.text);
    } else if (item.type.ends_with("_call")) {
      called[item.call_id] = item.name;
      text += fmt::format("assistant calls {}:\n{}", item.name, item.text);
    } else {
      const auto call = called.find(item.call_id);
      if (call == called.end()) {
        const std::string path = one.path() + ".call_id";
        throw RequestError(path, ErrorReason::invalid_value,
                           fmt::format("{}: found {}, expected the call_id of an earlier call",
                                       path, json_quote(item.call_id)));
      }
      text += fmt::format("{} answers:\n{}", call->second, item.text);
    }
  }
  return text;
}

std::string read_content_text(const Json& content) {
  if (content.is_null()) return "";
  return content.is_string() ? *content.string() : to_json(content);
}

}  // namespace paceline
