#include "protocol/decision_input.h"

#include <fmt/format.h>

#include <map>

#include "base/json_writer.h"
#include "base/request_error.h"
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

constexpr FieldDef<DecisionPart> kDecisionPartFields[] = {
    required("type", only_words_type(kPartWords), "input_text, input_json, output_text or refusal.",
             store<&DecisionPart::type>),
    field("text", kAnyText, "Of a text.", store<&DecisionPart::text>),
    field("refusal", kAnyText, "Of a refusal.", store<&DecisionPart::text>),
    field("data", kJsonData, "Of input_json.",
          [](const FieldValue& v, DecisionPart& t) { t.text = to_json(v.json()); }),
};

std::string decision_part_text(const FieldValue& value) {
  const auto part = read_object<kDecisionPartFields, FieldLevel::part>(value);
  std::string_view member = "text";
  if (part.type == "input_json") member = "data";
  if (part.type == "refusal") member = "refusal";
  RequestReader(value).require(member);
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
    field("type", word_type(kItemWords),
          "message, function_call, function_call_output, custom_tool_call or "
          "custom_tool_call_output.",
          {.by_default = "message"}, store<&DecisionItem::type>),
    field("role", word_type(kDecisionRoles), "Of a message.", store<&DecisionItem::role>),
    field("content", kDecisionText, "Of a message.", take_item_content),
    field("name", kAnyText, "Of a call.", store<&DecisionItem::name>),
    field("arguments", kAnyText, "Of a function call.", store<&DecisionItem::text>),
    field("input", kAnyText, "Of a custom tool's call.", store<&DecisionItem::text>),
    field("output", kDecisionText, "Of a call.", take_item_content),
    field("call_id", kAnyText, "Of a call and of its output.", store<&DecisionItem::call_id>),
    ignored("status", kAnyText, "Items are complete."),
    ignored("namespace", kAnyText, "Calls are known by their names."),
};

// The members that an item of the type must have.
std::vector<std::string_view> required_members(std::string_view type) {
  if (type == "message") return {"role", "content"};
  if (type == "function_call") return {"name", "call_id", "arguments"};
  if (type == "custom_tool_call") return {"name", "call_id", "input"};
  return {"call_id", "output"};
}

DecisionItem read_decision_item(const FieldValue& value) {
  auto item = read_object<kDecisionItemFields, FieldLevel::message>(value);
  for (const std::string_view member : required_members(item.type)) {
    RequestReader(value).require(member);
  }
  return item;
}

}  // namespace

FieldList decision_part_fields() { return fields_of<kDecisionPartFields, FieldLevel::part>(); }

FieldList decision_item_fields() { return fields_of<kDecisionItemFields, FieldLevel::message>(); }

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
        throw invalid_field(
            one.path() + ".call_id",
            found_instead(json_quote(item.call_id), "the call_id of an earlier call"));
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
