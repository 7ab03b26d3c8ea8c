#include "protocol/responses_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "protocol/request_reader.h"

namespace paceline::responses {
namespace {

constexpr uint64_t kMaxNameBytes = 128;

struct Format {
  std::string type;
  std::string syntax;
  std::optional<std::string> definition;
};

constexpr std::string_view kInputFormatWords[] = {"text", "grammar"};
constexpr std::string_view kSyntaxWords[] = {"regex", "lark"};

constexpr FieldDef<Format> kInputFormatFields[] = {
    required("type", word_type(kInputFormatWords),
             "text: any; grammar: what the definition allows.", store<&Format::type>),
    field("syntax", word_type(kSyntaxWords),
          "Of a grammar: a regular expression, or Lark's notation.", store<&Format::syntax>),
    field("definition", kAnyText, "Of a grammar: its text.", store<&Format::definition>),
};

struct Tool {
  std::string type;
  ToolSpec spec;
  Json::Object shown;  // the function, as the template shows it
  std::optional<Format> format;
};

void read_input_format(const FieldValue& value, Tool& tool) {
  Format& format = tool.format.emplace();
  read_members<kInputFormatFields>(value, format);
  if (format.type != "grammar") return;
  const RequestReader reader(value);
  reader.require("syntax");
  reader.require("definition");
}

constexpr FieldDef<Tool> kToolFields[] = {
    required("type", kAnyText,
             "function or custom; tools of other types, which OpenAI's servers run, are left out.",
             store<&Tool::type>),
    required("name", text_type(1, kMaxNameBytes), "What the model calls it by.",
             [](const FieldValue& v, Tool& t) {
               t.spec.name = v.text();
               t.shown.emplace_back("name", v.json());
             }),
    field("description", kAnyText, "What it does.",
          [](const FieldValue& v, Tool& t) { t.shown.emplace_back("description", v.json()); }),
    field("parameters", kAnyObject,
          "Of a function: a JSON Schema of its arguments, which calls obey.",
          [](const FieldValue& v, Tool& t) {
            t.spec.parameters = to_json(v.json());
            t.shown.emplace_back("parameters", v.json());
          }),
    field("strict", kBoolean, kStrictParametersHelp, kOff,
          store<&Tool::spec, &ToolSpec::is_strict>),
    field("format", object_type(fields_of<kInputFormatFields>),
          "Of a custom tool: what its input may be.", read_input_format),
    ignored("output_schema", kAnyObject, "Outputs are taken as they come."),
    ignored("allowed_callers", kAnyList, "The model calls it, nothing else does."),
    ignored("async", kBoolean, "The client runs it as it likes."),
};

// A custom tool is a function of one text, its input.
void make_function(Tool& tool) {
  Json::Object input{{"type", "string"}};
  if (tool.format && tool.format->type == "grammar") {
    const std::string& definition = *tool.format->definition;
    if (tool.format->syntax == "regex") {
      input.emplace_back("pattern", Json(fmt::format("^(?:{})$", definition)));
    } else {
      tool.spec.input_grammar = definition;
      input.emplace_back("description",
                         Json("A text of this grammar, in Lark's notation:\n" + definition));
    }
  }
  Json parameters(Json::Object{{"type", "object"},
                               {"properties", Json::Object{{"input", std::move(input)}}},
                               {"required", Json::Array{"input"}},
                               {"additionalProperties", false}});
  tool.spec.parameters = to_json(parameters);
  tool.shown.emplace_back("parameters", std::move(parameters));
}

bool is_own(std::string_view type) { return type == "function" || type == "custom"; }

struct Choice {
  std::string type;
  std::string name;
  std::string mode = "auto";
  std::optional<FieldValue> tools;
};

constexpr std::string_view kModeWords[] = {"auto", "required"};

constexpr FieldDef<Choice> kChoiceFields[] = {
    required("type", kAnyText,
             "function or custom, with a name; allowed_tools, with mode and tools.",
             store<&Choice::type>),
    field("name", text_type(1, kMaxNameBytes), "The tool to call.", store<&Choice::name>),
    field("mode", word_type(kModeWords), "With allowed_tools: whether calls may come or must.",
          store<&Choice::mode>),
    field("tools", array_type(kAnyObject, 1, kMaxTools),
          "With allowed_tools: the tools that may be called, each with its type and name; the "
          "template shows the model all tools.",
          store<&Choice::tools>),
};

Choice read_choice(const FieldValue& value) {
  Choice choice;
  RequestReader reader(value);
  reader.read<Choice>(kChoiceFields, choice);
  if (!is_own(choice.type) && choice.type != "allowed_tools") {
    const std::string path = value.at().name_of("type");
    throw RequestError(path, ErrorReason::unsupported_parameter,
                       fmt::format("{}: found {}, only function, custom and allowed_tools are "
                                   "supported: this server runs no tools itself",
                                   path, shown_text(choice.type)));
  }
  reader.finish();
  reader.require(is_own(choice.type) ? "name" : "tools");
  return choice;
}

void allow_tools(const Choice& choice, TurnRequest& turn) {
  std::vector<ToolSpec> allowed;
  for (const FieldValue& item : choice.tools->items()) {
    const std::string* const type = item.json().find_text("type");
    if (type != nullptr && !is_own(*type)) continue;  // never offered
    const Choice one = read_choice(item);
    const auto found = std::find_if(turn.tools.begin(), turn.tools.end(),
                                    [&](const ToolSpec& spec) { return spec.name == one.name; });
    if (found == turn.tools.end()) {
      throw invalid_field(item.at().name_of("name"), "found {}, which no tool has",
                          shown_text(one.name));
    }
    allowed.push_back(*found);
  }
  turn.tools = std::move(allowed);
  turn.tool_choice = choice.mode == "required" ? ToolChoice::required : ToolChoice::automatic;
}

}  // namespace

FieldList tool_fields() { return fields_of<kToolFields, FieldLevel::tool>(); }

FieldList tool_choice_fields() { return fields_of<kChoiceFields>(); }

void read_tools(const FieldValue& value, ChatRequest& chat, OfferedTools& offered) {
  Json::Array shown;
  for (const FieldValue& item : value.items()) {
    const std::string* const type = item.json().find_text("type");
    if (type != nullptr && !is_own(*type)) {
      offered.hosted.push_back(*type);
      chat.warnings.push_back(
          fmt::format("{}: {} left out, this server runs no tools itself", item.path(), *type));
      continue;
    }
    auto tool = read_object<kToolFields, FieldLevel::tool>(item);
    if (tool.type == "custom") {
      make_function(tool);
      offered.custom.push_back(tool.spec.name);
    }
    chat.turn.tools.push_back(std::move(tool.spec));
    shown.push_back(Json::Object{{"type", "function"}, {"function", std::move(tool.shown)}});
  }
  chat.input.tools_json = tools_text(value, std::move(shown));
}

void read_tool_choice(const FieldValue& value, const OfferedTools& offered, TurnRequest& turn) {
  if (value.json().is_string()) {
    const std::string& word = value.text();
    turn.tool_choice = value.one_of<ToolChoice>(kToolChoiceWords);
    if (word == "required" && turn.tools.empty() && !offered.hosted.empty()) {
      throw RequestError(value.path(), ErrorReason::unsupported_parameter,
                         fmt::format("{}: a call is required, but of the tools only {} are there, "
                                     "which this server doesn't run",
                                     value.path(), fmt::join(offered.hosted, ", ")));
    }
    return;
  }
  const Choice choice = read_choice(value);
  if (choice.type == "allowed_tools") return allow_tools(choice, turn);
  turn.tool_choice = ToolChoice::named;
  turn.tool_name = choice.name;
}

}  // namespace paceline::responses
