#include "protocol/anthropic_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"
#include "protocol/request_reader.h"
#include "protocol/response.h"

namespace paceline::anthropic {
namespace {

constexpr uint64_t kMaxNameBytes = 128;

// Fields as read, before dependent ones are combined.
struct Draft : Request {
  History history;
  std::optional<bool> reasons;
  std::optional<std::string> effort;
  bool keeps_reasoning = false;  // of earlier turns
  std::vector<std::string> skipped_tools;

  TurnRequest& turn() { return chat.turn; }
};

struct CustomTool {
  std::string name;
  Json description;  // null: none
  Json input_schema;
  Json input_examples;
  bool is_strict = false;
};

constexpr FieldDef<CustomTool> kToolFields[] = {
    required("name", text_type(1, kMaxNameBytes), "What the model calls it by.",
             store<&CustomTool::name>),
    field("description", kAnyText, "What it does.", store<&CustomTool::description>),
    required("input_schema", kAnyObject, "A JSON Schema of its input, which calls obey.",
             store<&CustomTool::input_schema>),
    field("type", kAnyText, "custom; tools that Anthropic defines are left out.",
          {.by_default = "custom"}),
    field("strict", kBoolean,
          "Refuse an input_schema with a part that can't be enforced, or a format that isn't "
          "known; else such parts are left out and named in the answer's warnings.",
          kOff, store<&CustomTool::is_strict>),
    field("input_examples", kAnyList, "Examples of inputs, where the template shows them.",
          store<&CustomTool::input_examples>),
};

constexpr FieldType kTool = object_type(fields_of<kToolFields, FieldLevel::custom_tool>);

// Kinds of tools that run at Anthropic's servers, or whose schemas its models know; types have a
// date behind them.
constexpr std::string_view kOtherKinds[] = {
    "advisor_", "bash_",        "browser_",          "code_execution_", "computer_",  "memory_",
    "mcp_",     "text_editor_", "tool_search_tool_", "web_fetch_",      "web_search_"};

// Whether it is one of them, which is then left out.
bool skips_tool(const FieldValue& value, Draft& draft) {
  const std::string* const kind = value.json().find_text("type");
  if (kind == nullptr || *kind == "custom") return false;
  if (!begins_like(*kind, kOtherKinds)) value.member("type").refuse_unsupported("\"custom\"");
  if (const auto* const name = value.json().find_text("name")) draft.skipped_tools.push_back(*name);
  draft.history.warnings.push_back(fmt::format(
      "{}: {} left out, only tools with an input_schema are offered", value.path(), *kind));
  return true;
}

// The tool as OpenAI's API has it, which templates show.
Json shown_tool(CustomTool tool) {
  Json::Object function{{"name", Json(std::move(tool.name))}};
  const auto add = [&](const char* name, Json& value) {
    if (!value.is_null()) function.emplace_back(name, std::move(value));
  };
  add("description", tool.description);
  add("parameters", tool.input_schema);
  add("input_examples", tool.input_examples);
  return Json::Object{{"type", "function"}, {"function", std::move(function)}};
}

void read_tools(const FieldValue& value, Draft& draft) {
  Json::Array shown;
  for (const FieldValue& item : value.items()) {
    if (skips_tool(item, draft)) continue;
    auto tool = read_object<kToolFields, FieldLevel::custom_tool>(item);
    draft.turn().tools.push_back(
        {.name = tool.name, .parameters = to_json(tool.input_schema), .is_strict = tool.is_strict});
    shown.push_back(shown_tool(std::move(tool)));
  }
  draft.chat.input.tools_json = tools_text(value, std::move(shown));
}

constexpr std::string_view kChoiceWords[] = {"auto", "any", "tool", "none"};

constexpr FieldDef<ChatOptions> kToolChoiceFields[] = {
    required("type", word_type(kChoiceWords),
             "auto: calls may come; any: they must; tool: one of the named tool; none: they can't.",
             [](const FieldValue& v, ChatOptions& t) {
               t.tool_choice = v.text() == "auto"   ? ToolChoice::automatic
                               : v.text() == "any"  ? ToolChoice::required
                               : v.text() == "tool" ? ToolChoice::named
                                                    : ToolChoice::none;
             }),
    field("name", text_type(1, kMaxNameBytes), "The tool to call.", store<&ChatOptions::tool_name>),
    field("disable_parallel_tool_use", kBoolean, "Whether an answer has at most one call.", kOff,
          [](const FieldValue& v, ChatOptions& t) { t.parallel_tool_calls = !v.boolean(); }),
};

void read_tool_choice(const FieldValue& value, Draft& draft) {
  read_members<kToolChoiceFields>(value, draft.turn());
  if (draft.turn().tool_choice != ToolChoice::named) return;
  RequestReader(value).require("name");
  const auto& skipped = draft.skipped_tools;
  if (std::find(skipped.begin(), skipped.end(), draft.turn().tool_name) == skipped.end()) return;
  value.member("name").refuse_unsupported("a tool with an input_schema");
}

constexpr std::string_view kThinkingWords[] = {"enabled", "adaptive", "disabled", "between_tools"};
constexpr std::string_view kDisplayWords[] = {"summarized", "omitted"};

constexpr FieldDef<Draft> kThinkingFields[] = {
    required(
        "type", word_type(kThinkingWords),
        "Whether the model reasons, where its template has a switch; adaptive and between_tools "
        "leave it to the model.",
        [](const FieldValue& v, Draft& t) {
          if (v.text() == "enabled" || v.text() == "disabled") t.reasons = v.text() == "enabled";
        }),
    ignored("budget_tokens", integer_type(1, kNoMaximum),
            "max_tokens bounds reasoning and text together."),
    field("display", word_type(kDisplayWords),
          "omitted: blocks of thinking have only their signature; else the reasoning comes whole.",
          [](const FieldValue& v, Draft& t) { t.shows_reasoning = v.text() != "omitted"; }),
};

constexpr std::string_view kFormatWords[] = {"json_schema"};

constexpr FieldDef<AskedConstraint> kFormatFields[] = {
    required("type", only_words_type(kFormatWords), "The kind."),
    required(
        "schema", kAnyObject,
        "The text is JSON that this JSON Schema accepts; parts that can't be enforced are left out "
        "and named in the answer's warnings.",
        [](const FieldValue& v, AskedConstraint& t) {
          t.spec = {.kind = ConstraintSpec::Kind::json_schema,
                    .text = to_json(v.json()),
                    .best_effort = true};
          t.field = v.path();
        }),
};

void read_format(const FieldValue& value, Draft& draft) {
  read_members<kFormatFields>(value, draft.chat.generation.constraint);
}

constexpr std::string_view kEfforts[] = {"low", "medium", "high", "xhigh", "max"};

constexpr FieldDef<Draft> kOutputFields[] = {
    field("effort", word_type(kEfforts),
          "How much the model reasons, where its template has a switch.", store<&Draft::effort>),
    field("format", object_type(fields_of<kFormatFields>), "What the text must be.", read_format),
    ignored("task_budget", kAnyObject, "max_tokens bounds an answer."),
};

struct ContextEdit {
  std::string type;
  bool keeps_all = false;
};

constexpr std::string_view kEdits[] = {"clear_thinking_20251015", "clear_tool_uses_20250919"};

// "all", or {"type": "all"}.
void read_keep(const FieldValue& value, ContextEdit& edit) {
  const Json* const type = value.json().find_value("type");
  const Json& word = type == nullptr ? value.json() : *type;
  edit.keeps_all = word.is_string() && *word.string() == "all";
}

constexpr FieldDef<ContextEdit> kEditFields[] = {
    required("type", only_words_type(kEdits), "Tool uses stay.", store<&ContextEdit::type>),
    field("keep", kAnyValue,
          "Of clear_thinking_20251015: all keeps earlier reasoning, where the template can.",
          read_keep),
};

constexpr FieldType kEdit = object_type(fields_of<kEditFields>);

constexpr FieldDef<Draft> kContextFields[] = {
    field("edits", array_type(kEdit, 0, kNoMaximum), "What of the conversation is left out.",
          [](const FieldValue& v, Draft& t) {
            for (const FieldValue& item : v.items()) {
              ContextEdit edit;
              RequestReader(item).read<ContextEdit>(kEditFields, edit);
              t.keeps_reasoning |= edit.type == kEdits[0] && edit.keeps_all;
            }
          }),
};

constexpr FieldDef<Draft> kPromptFields[] = {
    field("system", kContent, "The system prompt: a text, or blocks of text.",
          [](const FieldValue& v, Draft& t) { read_system(v, t.history); }),
    required("messages", array_type(kMessage, 1, kNoMaximum),
             "The conversation so far; the answer goes on with a last message of the assistant.",
             [](const FieldValue& v, Draft& t) { read_messages(v, t.history); }),
    field("tools", array_type(kTool, 0, kMaxTools),
          "Tools with an input_schema, as the template shows them to the model.", read_tools),
    field("tool_choice", object_type(fields_of<kToolChoiceFields>),
          "Whether calls may, must or can't come.", read_tool_choice),
    object<kThinkingFields>("thinking", "Whether the model reasons.",
                            {.when_unset = "as the model does"}),
    object<kOutputFields>("output_config", "Effort and format of the answer."),
    field("output_format", object_type(fields_of<kFormatFields>),
          "The older place of output_config.format.", {.alias_of = "output_config"}, read_format),
    object<kContextFields>("context_management", "Whether earlier reasoning stays."),
    field("chat_template_kwargs", kAnyObject, "Further variables of the template.",
          [](const FieldValue& v, Draft& t) {
            t.chat.input.kwargs_json = read_template_variables(v);
          }),
};

constexpr ListLimits kStopLimits = generation_option("stop").list;
constexpr FieldType kStopText = text_type(1, kStopLimits.max_bytes);

constexpr FieldDef<ChatRequest> kAnswerFields[] = {
    required("max_tokens", kOutputTokens,
             "The most tokens of reasoning and text; 0 computes only the prompt, for the cache.",
             store<&ChatRequest::options, &GenerateOptions::max_tokens>),
    field("stop_sequences", array_type(kStopText, 0, kStopLimits.max_items),
          generation_option("stop").help, store<&ChatRequest::options, &GenerateOptions::stop>),
    field("stream", kBoolean, "Answer in events as the text comes.", kOff,
          [](const FieldValue& v, ChatRequest& t) { t.generation.streaming.stream = v.boolean(); }),
};

Draft read_prompt(RequestReader& reader, const SignatureReader& signatures) {
  Draft draft;
  draft.history.signatures = signatures;
  reader.read(common_fields(), draft.chat.common);
  read_client_fields(FieldLevel::request, reader);
  reader.read<Draft>(kPromptFields, draft);
  read_client_fields(FieldLevel::messages, reader);
  return draft;
}

// What the fields mean together.
Request finish(const Json& body, const RequestReader& reader, Draft draft) {
  reader.finish();
  ChatRequest& chat = draft.chat;
  chat.input.messages = std::move(draft.history.messages);
  chat.warnings = std::move(draft.history.warnings);
  if (draft.reasons == false) {
    chat.turn.reasoning_effort = "none";
  } else if (draft.effort || draft.reasons) {
    chat.turn.reasoning_effort = draft.effort.value_or("medium");
  }
  if (draft.keeps_reasoning) {
    add_template_variable("preserve_thinking", Json(true), chat.input);  // Qwen's
    add_template_variable("clear_thinking", Json(false), chat.input);    // GLM's
  }
  chat.input.continue_final_message = draft.history.is_answer_open;
  chat.input.add_generation_prompt = !draft.history.is_answer_open;
  chat.turn.make_call_id = [] { return random_id("toolu_"); };
  finish_chat_request(body, chat);
  // Nothing is drawn that could be constrained.
  if (chat.options.max_tokens == 0) {
    chat.turn.tools.clear();
    chat.options.constraint.reset();
  }
  return draft;
}

}  // namespace

Request parse_request(const Json& body, const RequestTerms& terms,
                      const SignatureReader& signatures) {
  RequestReader reader(body, terms);
  Draft draft = read_prompt(reader, signatures);
  reader.read<ChatRequest>(kAnswerFields, draft.chat);
  reader.read(sampling_fields(), draft.chat.options);
  return finish(body, reader, std::move(draft));
}

Request parse_prompt(const Json& body, const RequestTerms& terms,
                     const SignatureReader& signatures) {
  RequestReader reader(body, terms);
  return finish(body, reader, read_prompt(reader, signatures));
}

FieldList prompt_fields() {
  FieldList list = common_and_own_fields<kPromptFields>();
  append_client_fields(FieldLevel::messages, list);
  return list;
}

FieldList request_fields() {
  FieldList list = prompt_fields();
  append_fields<ChatRequest>(kAnswerFields, list);
  append_fields(sampling_fields(), list);
  return list;
}

}  // namespace paceline::anthropic
