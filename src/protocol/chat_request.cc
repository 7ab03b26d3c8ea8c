#include "protocol/chat_request.h"

#include "base/json_writer.h"
#include "base/request_error.h"
#include "chat/message_json.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"
#include "protocol/client_fields.h"

namespace paceline {
namespace {

// Fields as read, before dependent ones are combined.
struct ChatDraft {
  ChatRequest request;
  std::optional<int64_t> max_tokens;
  std::optional<int64_t> max_completion_tokens;
  std::optional<int32_t> top_logprobs;
  int32_t num_probabilities = 0;
  std::optional<bool> clear_thinking;
};

constexpr FieldType kObjects = array_type(kAnyObject, 0, kNoMaximum);
constexpr FieldType kModalities = array_type(kOnlyTextWord, 0, kNoMaximum);

constexpr std::string_view kContentWords[] = {"content"};
constexpr std::string_view kReasoningEfforts[] = {"none", "minimal", "low", "medium",
                                                  "high", "xhigh",   "max"};

constexpr FieldDef<ChatDraft> kPredictionFields[] = {
    {.name = "type",
     .type = only_words_type(kContentWords),
     .is_required = true,
     .help = "Only content."},
    {.name = "content",
     .type = kContent,
     .is_required = true,
     .help = "The text, as a string or parts.",
     .read = [](const FieldValue& v,
                ChatDraft& t) { t.request.options.prediction = read_content(v); }},
};

// The older and the other servers' switches for reasoning stand after reasoning_effort.
void ask_for_effort(const std::string& effort, ChatDraft& draft) {
  auto& asked = draft.request.turn.reasoning_effort;
  if (!asked) asked = effort;
}

void switch_reasoning(bool is_on, ChatDraft& draft) {
  ask_for_effort(is_on ? "medium" : "none", draft);
}

constexpr FieldDef<ChatDraft> kReasoningFields[] = {
    {.name = "effort",
     .type = word_type(kReasoningEfforts),
     .help = "As reasoning_effort.",
     .read = [](const FieldValue& v, ChatDraft& t) { ask_for_effort(v.text(), t); }},
    {.name = "enabled",
     .type = kBoolean,
     .help = "Whether the model reasons.",
     .read = [](const FieldValue& v, ChatDraft& t) { switch_reasoning(v.boolean(), t); }},
    {.name = "exclude", .type = kOnlyFalse, .by_default = false, .help = "Only false."},
    {.name = "summary",
     .type = kAnyText,
     .use = FieldUse::accepted,
     .help = "The reasoning comes whole."},
    {.name = "max_tokens", .use = FieldUse::refused, .help = "use max_completion_tokens"},
};

constexpr std::string_view kThinkingWords[] = {"enabled", "disabled", "adaptive", "auto"};

constexpr FieldDef<ChatDraft> kThinkingFields[] = {
    {.name = "type",
     .type = word_type(kThinkingWords),
     .is_required = true,
     .help = "adaptive and auto leave it to the model.",
     .read =
         [](const FieldValue& v, ChatDraft& t) {
           if (v.text() == "enabled" || v.text() == "disabled") {
             switch_reasoning(v.text() == "enabled", t);
           }
         }},
    {.name = "clear_thinking",
     .type = kBoolean,
     .help = "The variable of this name of a template that leaves out earlier reasoning.",
     .read = [](const FieldValue& v, ChatDraft& t) { t.clear_thinking = v.boolean(); }},
    {.name = "budget_tokens", .use = FieldUse::refused, .help = "use max_completion_tokens"},
};

constexpr FieldDef<ChatDraft> kChatFields[] = {
    {.name = "messages",
     .type = kMessages,
     .is_required = true,
     .help = "The conversation so far; content is a string or parts of text.",
     .read = [](const FieldValue& v,
                ChatDraft& t) { t.request.input.messages = read_messages(v, t.request.warnings); }},
    {.name = "max_completion_tokens",
     .type = kOutputTokens,
     .when_unset = "the model's, else the rest of the context",
     .help = generation_option("max_tokens").help,
     .read = [](const FieldValue& v, ChatDraft& t) { t.max_completion_tokens = v.integer(); }},
    {.name = "max_tokens",
     .type = kOutputTokens,
     .alias_of = "max_completion_tokens",
     .help = "The older name of it.",
     .read = [](const FieldValue& v, ChatDraft& t) { t.max_tokens = v.integer(); }},
    {.name = "logprobs",
     .type = kBoolean,
     .by_default = false,
     .help = "Report each token's log-probability.",
     .read = [](const FieldValue& v, ChatDraft& t) { t.request.logprobs = v.boolean(); }},
    {.name = "top_logprobs",
     .type = kNumTopLogprobs,
     .help = "Alternatives reported beside each token; needs logprobs.",
     .read = [](const FieldValue& v, ChatDraft& t) { t.top_logprobs = v.small_integer(); }},
    {.name = "n_probs",
     .type = kNumTopLogprobs,
     .help = "llama.cpp's name: alternatives reported beside each token; 0: none.",
     .read = [](const FieldValue& v, ChatDraft& t) { t.num_probabilities = v.small_integer(); }},
    {.name = "tools",
     .type = kTools,
     .help = "Functions that the model may call, as the template shows them to it.",
     .read = [](const FieldValue& v,
                ChatDraft& t) { t.request.input.tools_json = read_tools(v, t.request.turn); }},
    {.name = "tool_choice",
     .type = kToolChoices,
     .by_default = std::string_view("auto"),
     .help =
         "Whether calls may come (auto), must come (required, or one of the named function), or "
         "can't (none, which hides the tools).",
     .read = [](const FieldValue& v, ChatDraft& t) { read_tool_choice(v, t.request.turn); }},
    {.name = "parallel_tool_calls",
     .type = kBoolean,
     .by_default = true,
     .help = "Whether an answer may have several calls, where the template can write them.",
     .read = [](const FieldValue& v,
                ChatDraft& t) { t.request.turn.parallel_tool_calls = v.boolean(); }},
    {.name = "documents",
     .type = kObjects,
     .help = "Objects that the template shows to the model.",
     .read = [](const FieldValue& v,
                ChatDraft& t) { t.request.input.documents_json = to_json(v.json()); }},
    {.name = "chat_template_kwargs",
     .type = kAnyObject,
     .help = "Further variables of the template.",
     .read = [](const FieldValue& v,
                ChatDraft& t) { t.request.input.kwargs_json = read_template_variables(v); }},
    {.name = "add_generation_prompt",
     .type = kBoolean,
     .by_default = true,
     .help = "End the prompt where the answer begins.",
     .read = [](const FieldValue& v,
                ChatDraft& t) { t.request.input.add_generation_prompt = v.boolean(); }},
    {.name = "continue_final_message",
     .type = kBoolean,
     .by_default = false,
     .help = "The answer goes on with the last message; add_generation_prompt must be false.",
     .read = [](const FieldValue& v,
                ChatDraft& t) { t.request.input.continue_final_message = v.boolean(); }},
    {.name = "add_special_tokens",
     .type = kOnlyFalse,
     .by_default = false,
     .help = "Only false: the template writes them."},
    {.name = "prediction",
     .type = object_type(fields_of<kPredictionFields>),
     .help = "A text that the answer will mostly repeat: drafts for it, which never change it.",
     .read = read_members<kPredictionFields>},
    {.name = "modalities", .type = kModalities, .help = "Only [\"text\"]."},
    {.name = "echo", .type = kOnlyFalse, .by_default = false, .help = "Only false."},
    {.name = "reasoning_effort",
     .type = word_type(kReasoningEfforts),
     .help = "How much the model reasons, where its template has a switch: none turns it off.",
     .read = [](const FieldValue& v, ChatDraft& t) { t.request.turn.reasoning_effort = v.text(); }},
    {.name = "reasoning",
     .type = object_type(fields_of<kReasoningFields>),
     .help = "OpenRouter's way to ask for reasoning; reasoning_effort goes before it.",
     .read = read_members<kReasoningFields>},
    {.name = "thinking",
     .type = object_type(fields_of<kThinkingFields>),
     .help = "Whether the model reasons, as Z.ai, DeepSeek and Anthropic have it.",
     .read = read_members<kThinkingFields>},
    {.name = "enable_thinking",
     .type = kBoolean,
     .help = "Whether the model reasons, as DashScope has it.",
     .read = [](const FieldValue& v, ChatDraft& t) { switch_reasoning(v.boolean(), t); }},
    {.name = "chat_template_args",
     .type = kAnyObject,
     .alias_of = "chat_template_kwargs",
     .help = "Baseten's name of it.",
     .read = [](const FieldValue& v,
                ChatDraft& t) { t.request.input.kwargs_json = read_template_variables(v); }},
};

void combine_fields(ChatDraft& draft) {
  ChatRequest& request = draft.request;
  if (draft.clear_thinking) {
    add_template_variable("clear_thinking", Json(*draft.clear_thinking), request.input);
  }
  if (draft.max_tokens && draft.max_completion_tokens &&
      *draft.max_tokens != *draft.max_completion_tokens) {
    throw invalid_field("max_tokens", "differs from max_completion_tokens, give one of them");
  }
  if (draft.max_tokens) request.options.max_tokens = draft.max_tokens;
  if (draft.max_completion_tokens) request.options.max_tokens = draft.max_completion_tokens;
  if (draft.num_probabilities > 0 && !draft.top_logprobs) {
    request.logprobs = true;
    draft.top_logprobs = draft.num_probabilities;
  }
  if (draft.top_logprobs && *draft.top_logprobs > 0 && !request.logprobs) {
    throw invalid_field("top_logprobs", "only allowed when logprobs is true");
  }
  request.top_logprobs = draft.top_logprobs.value_or(0);
  check_stream_fields(request.generation.streaming);
  check_penalty_fields(request.generation, request.options);
  check_logprob_fields(request.options, request.logprobs);
  check_continuation(request.input);
}

}  // namespace

ChatRequest parse_chat_request(const Json& body, const RequestTerms& terms) {
  ChatDraft draft;
  RequestReader reader(body, terms);
  reader.read(common_fields(), draft.request.common);
  read_client_fields(FieldLevel::request, reader);
  reader.read(sampling_fields(), draft.request.options);
  reader.read(text_fields(), draft.request.options);
  reader.read(generation_fields(), draft.request.generation);
  reader.read(constraint_fields(), draft.request.generation.constraint);
  reader.read<ChatDraft>(kChatFields, draft);
  read_client_fields(FieldLevel::chat, reader);
  reader.finish();
  draft.request.turn.make_call_id = [] { return random_id("call_"); };
  combine_fields(draft);
  finish_chat_request(body, draft.request);
  return std::move(draft.request);
}

void finish_chat_request(const Json& body, ChatRequest& request) {
  request.options.constraint = request.generation.constraint.spec;
  request.options.constraint_name = request.generation.constraint.field;
  request.generation.has_negative_seed = has_negative_seed(body);
  if (const std::string problem = tool_choice_problem(request.turn); !problem.empty()) {
    throw RequestError("tool_choice", ErrorReason::invalid_value, problem);
  }
  if (request.turn.tool_choice == ToolChoice::none) request.input.tools_json.clear();
}

FieldList chat_request_fields() {
  FieldList list;
  append_fields(common_fields(), list);
  append_client_fields(FieldLevel::request, list);
  append_fields<ChatDraft>(kChatFields, list);
  append_client_fields(FieldLevel::chat, list);
  append_fields(generation_fields(), list);
  append_fields(constraint_fields(), list);
  append_fields(text_fields(), list);
  append_fields(sampling_fields(), list);
  return list;
}

}  // namespace paceline
