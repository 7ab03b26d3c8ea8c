#include "protocol/anthropic_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "protocol/anthropic_messages.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"
#include "protocol/client_fields.h"
#include "protocol/response.h"

namespace paceline::anthropic {
namespace {

constexpr uint64_t kMaxNameBytes = 128;

// Fields as read, before dependent ones are combined.
struct Draft {
  Request request;
  History history;
  std::optional<bool> reasons;
  std::optional<std::string> effort;
  bool keeps_reasoning = false;  // of earlier turns
  std::vector<std::string> skipped_tools;

  TurnRequest& turn() { return request.chat.turn; }
};

struct CustomTool {
  std::string name;
  Json description;  // null: none
  Json input_schema;
  Json input_examples;
  bool is_strict = false;
};

constexpr FieldDef<CustomTool> kToolFields[] = {
    {.name = "name",
     .type = text_type(1, kMaxNameBytes),
     .is_required = true,
     .help = "What the model calls it by.",
     .read = store<&CustomTool::name>},
    {.name = "description",
     .type = kAnyText,
     .help = "What it does.",
     .read = store<&CustomTool::description>},
    {.name = "input_schema",
     .type = kAnyObject,
     .is_required = true,
     .help = "A JSON Schema of its input, which calls obey.",
     .read = store<&CustomTool::input_schema>},
    {.name = "type",
     .type = kAnyText,
     .by_default = std::string_view("custom"),
     .help = "custom; tools that Anthropic defines are left out."},
    {.name = "strict",
     .type = kBoolean,
     .by_default = false,
     .help = "Refuse an input_schema with a part that can't be enforced, or a format that isn't "
             "known; else such parts are left out and named in the answer's warnings.",
     .read = store<&CustomTool::is_strict>},
    {.name = "input_examples",
     .type = {.kind = FieldKind::array},
     .help = "Examples of inputs, where the template shows them.",
     .read = store<&CustomTool::input_examples>},
};

FieldList tool_fields() {
  FieldList list = list_fields<CustomTool>(kToolFields);
  append_client_fields(FieldLevel::custom_tool, list);
  return list;
}
constexpr FieldType kTool = object_type(tool_fields);

// Kinds of tools that run at Anthropic's servers, or whose schemas its models know; types have a
// date behind them.
constexpr std::string_view kOtherKinds[] = {
    "advisor_", "bash_",        "browser_",          "code_execution_", "computer_",  "memory_",
    "mcp_",     "text_editor_", "tool_search_tool_", "web_fetch_",      "web_search_"};

// Whether it is one of them, which is then left out.
bool skips_tool(const FieldValue& value, Draft& draft) {
  const auto type = value.at().find("type");
  if (!type || !type->is_string() || type->string() == "custom") return false;
  const std::string& kind = type->string();
  if (std::none_of(std::begin(kOtherKinds), std::end(kOtherKinds),
                   [&](std::string_view other) { return kind.starts_with(other); })) {
    FieldValue(*type, value.terms()).refuse_unsupported("\"custom\"");
  }
  const Json* const name = value.json().find_value("name");
  if (name != nullptr && name->is_string()) draft.skipped_tools.push_back(*name->string());
  draft.history.warnings.push_back(fmt::format(
      "{}: {} left out, only tools with an input_schema are offered", value.path(), kind));
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
  return Json(Json::Object{{"type", Json(std::string("function"))},
                           {"function", Json(std::move(function))}});
}

void read_tools(const FieldValue& value, Draft& draft) {
  Json::Array shown;
  for (const FieldValue& item : value.items()) {
    if (skips_tool(item, draft)) continue;
    CustomTool tool;
    RequestReader reader(item);
    reader.read<CustomTool>(kToolFields, tool);
    read_client_fields(FieldLevel::custom_tool, reader);
    reader.finish();
    draft.turn().tools.push_back(
        {.name = tool.name, .parameters = to_json(tool.input_schema), .is_strict = tool.is_strict});
    shown.push_back(shown_tool(std::move(tool)));
  }
  draft.request.chat.input.tools_json = tools_text(value, std::move(shown));
}

constexpr std::string_view kChoiceWords[] = {"auto", "any", "tool", "none"};

constexpr FieldDef<TurnRequest> kToolChoiceFields[] = {
    {.name = "type",
     .type = word_type(kChoiceWords),
     .is_required = true,
     .help = "auto: calls may come; any: they must; tool: one of the named tool; none: they can't.",
     .read =
         [](const FieldValue& v, TurnRequest& t) {
           t.tool_choice = v.text() == "auto"   ? ToolChoice::automatic
                           : v.text() == "any"  ? ToolChoice::required
                           : v.text() == "tool" ? ToolChoice::named
                                                : ToolChoice::none;
         }},
    {.name = "name",
     .type = text_type(1, kMaxNameBytes),
     .help = "The tool to call.",
     .read = [](const FieldValue& v, TurnRequest& t) { t.tool_name = v.text(); }},
    {.name = "disable_parallel_tool_use",
     .type = kBoolean,
     .by_default = false,
     .help = "Whether an answer has at most one call.",
     .read = [](const FieldValue& v, TurnRequest& t) { t.parallel_tool_calls = !v.boolean(); }},
};

void read_tool_choice(const FieldValue& value, Draft& draft) {
  read_members<kToolChoiceFields>(value, draft.turn());
  if (draft.turn().tool_choice != ToolChoice::named) return;
  RequestReader(value).require("name");
  const auto& skipped = draft.skipped_tools;
  if (std::find(skipped.begin(), skipped.end(), draft.turn().tool_name) == skipped.end()) return;
  FieldValue(*value.at().find("name"), value.terms())
      .refuse_unsupported("a tool with an input_schema");
}

constexpr std::string_view kThinkingWords[] = {"enabled", "adaptive", "disabled", "between_tools"};
constexpr std::string_view kDisplayWords[] = {"summarized", "omitted"};

constexpr FieldDef<Draft> kThinkingFields[] = {
    {.name = "type",
     .type = word_type(kThinkingWords),
     .is_required = true,
     .help = "Whether the model reasons, where its template has a switch; adaptive and "
             "between_tools leave it to the model.",
     .read =
         [](const FieldValue& v, Draft& t) {
           if (v.text() == "enabled" || v.text() == "disabled") t.reasons = v.text() == "enabled";
         }},
    {.name = "budget_tokens",
     .type = integer_type(1, kNoMaximum),
     .use = FieldUse::accepted,
     .help = "max_tokens bounds reasoning and text together."},
    {.name = "display",
     .type = word_type(kDisplayWords),
     .help =
         "omitted: blocks of thinking have only their signature; else the reasoning comes whole.",
     .read = [](const FieldValue& v,
                Draft& t) { t.request.shows_reasoning = v.text() != "omitted"; }},
};

constexpr std::string_view kFormatWords[] = {"json_schema"};

constexpr FieldDef<AskedConstraint> kFormatFields[] = {
    {.name = "type",
     .type = only_words_type(kFormatWords),
     .is_required = true,
     .help = "The kind."},
    {.name = "schema",
     .type = kAnyObject,
     .is_required = true,
     .help =
         "The text is JSON that this JSON Schema accepts; parts that can't be enforced are left "
         "out and named in the answer's warnings.",
     .read =
         [](const FieldValue& v, AskedConstraint& t) {
           t.spec = {.kind = ConstraintSpec::Kind::json_schema,
                     .text = to_json(v.json()),
                     .choices = {},
                     .best_effort = true};
           t.field = v.path();
         }},
};

void read_format(const FieldValue& value, Draft& draft) {
  read_members<kFormatFields>(value, draft.request.chat.generation.constraint);
}

constexpr std::string_view kEfforts[] = {"low", "medium", "high", "xhigh", "max"};

constexpr FieldDef<Draft> kOutputFields[] = {
    {.name = "effort",
     .type = word_type(kEfforts),
     .help = "How much the model reasons, where its template has a switch.",
     .read = store<&Draft::effort>},
    {.name = "format",
     .type = object_type(fields_of<kFormatFields>),
     .help = "What the text must be.",
     .read = read_format},
    {.name = "task_budget",
     .type = kAnyObject,
     .use = FieldUse::accepted,
     .help = "max_tokens bounds an answer."},
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
    {.name = "type",
     .type = only_words_type(kEdits),
     .is_required = true,
     .help = "Tool uses stay.",
     .read = store<&ContextEdit::type>},
    {.name = "keep",
     .help = "Of clear_thinking_20251015: all keeps earlier reasoning, where the template can.",
     .read = read_keep},
};

constexpr FieldType kEdit = object_type(fields_of<kEditFields>);

constexpr FieldDef<Draft> kContextFields[] = {
    {.name = "edits",
     .type = array_type(kEdit, 0, kNoMaximum),
     .help = "What of the conversation is left out.",
     .read =
         [](const FieldValue& v, Draft& t) {
           for (const FieldValue& item : v.items()) {
             ContextEdit edit;
             RequestReader(item).read<ContextEdit>(kEditFields, edit);
             t.keeps_reasoning |= edit.type == kEdits[0] && edit.keeps_all;
           }
         }},
};

constexpr FieldDef<Draft> kPromptFields[] = {
    {.name = "system",
     .type = kContent,
     .help = "The system prompt: a text, or blocks of text.",
     .read = [](const FieldValue& v, Draft& t) { read_system(v, t.history); }},
    {.name = "messages",
     .type = array_type(kMessage, 1, kNoMaximum),
     .is_required = true,
     .help = "The conversation so far; the answer goes on with a last message of the assistant.",
     .read = [](const FieldValue& v, Draft& t) { read_messages(v, t.history); }},
    {.name = "tools",
     .type = array_type(kTool, 0, kMaxTools),
     .help = "Tools with an input_schema, as the template shows them to the model.",
     .read = read_tools},
    {.name = "tool_choice",
     .type = object_type(fields_of<kToolChoiceFields>),
     .help = "Whether calls may, must or can't come.",
     .read = read_tool_choice},
    {.name = "thinking",
     .type = object_type(fields_of<kThinkingFields>),
     .when_unset = "as the model does",
     .help = "Whether the model reasons.",
     .read = read_members<kThinkingFields>},
    {.name = "output_config",
     .type = object_type(fields_of<kOutputFields>),
     .help = "Effort and format of the answer.",
     .read = read_members<kOutputFields>},
    {.name = "output_format",
     .type = object_type(fields_of<kFormatFields>),
     .alias_of = "output_config",
     .help = "The older place of output_config.format.",
     .read = read_format},
    {.name = "context_management",
     .type = object_type(fields_of<kContextFields>),
     .help = "Whether earlier reasoning stays.",
     .read = read_members<kContextFields>},
    {.name = "chat_template_kwargs",
     .type = kAnyObject,
     .help = "Further variables of the template.",
     .read = [](const FieldValue& v,
                Draft& t) { t.request.chat.input.kwargs_json = read_template_variables(v); }},
};

constexpr ListLimits kStopLimits = generation_option("stop").list;
constexpr FieldType kStopText = text_type(1, kStopLimits.max_bytes);

constexpr FieldDef<ChatRequest> kAnswerFields[] = {
    {.name = "max_tokens",
     .type = kOutputTokens,
     .is_required = true,
     .help = "The most tokens of reasoning and text; 0 computes only the prompt, for the cache.",
     .read = [](const FieldValue& v, ChatRequest& t) { t.options.max_tokens = v.integer(); }},
    {.name = "stop_sequences",
     .type = array_type(kStopText, 0, kStopLimits.max_items),
     .help = generation_option("stop").help,
     .read =
         [](const FieldValue& v, ChatRequest& t) {
           for (const FieldValue& item : v.items()) t.options.stop.push_back(item.text());
         }},
    {.name = "stream",
     .type = kBoolean,
     .by_default = false,
     .help = "Answer in events as the text comes.",
     .read = [](const FieldValue& v,
                ChatRequest& t) { t.generation.streaming.stream = v.boolean(); }},
};

void read_prompt(RequestReader& reader, Draft& draft) {
  reader.read(common_fields(), draft.request.chat.common);
  read_client_fields(FieldLevel::request, reader);
  reader.read<Draft>(kPromptFields, draft);
  read_client_fields(FieldLevel::messages, reader);
}

// What the fields mean together.
Request finish(const Json& body, const RequestReader& reader, Draft draft) {
  reader.finish();
  ChatRequest& chat = draft.request.chat;
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
  return std::move(draft.request);
}

}  // namespace

Request parse_request(const Json& body, const RequestTerms& terms,
                      const SignatureReader& signatures) {
  Draft draft{.history = {.signatures = signatures}};
  RequestReader reader(body, terms);
  read_prompt(reader, draft);
  reader.read<ChatRequest>(kAnswerFields, draft.request.chat);
  reader.read(sampling_fields(), draft.request.chat.options);
  return finish(body, reader, std::move(draft));
}

Request parse_prompt(const Json& body, const RequestTerms& terms,
                     const SignatureReader& signatures) {
  Draft draft{.history = {.signatures = signatures}};
  RequestReader reader(body, terms);
  read_prompt(reader, draft);
  return finish(body, reader, std::move(draft));
}

FieldList prompt_fields() {
  FieldList list;
  append_fields(common_fields(), list);
  append_client_fields(FieldLevel::request, list);
  append_fields<Draft>(kPromptFields, list);
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
