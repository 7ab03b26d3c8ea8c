#include "protocol/chat_request.h"

#include "base/json_writer.h"
#include "base/request_error.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"
#include "protocol/request_reader.h"
#include "protocol/response.h"

namespace paceline {
namespace {

// Fields as read, before dependent ones are combined.
struct ChatDraft : ChatRequest {
  std::optional<int64_t> max_tokens;
  std::optional<int64_t> max_completion_tokens;
  std::optional<int32_t> asked_top_logprobs;
  int32_t num_probabilities = 0;
  std::optional<bool> clear_thinking;
};

constexpr FieldType kObjects = array_type(kAnyObject, 0, kNoMaximum);
constexpr FieldType kModalities = array_type(kOnlyTextWord, 0, kNoMaximum);

constexpr std::string_view kContentWords[] = {"content"};

constexpr FieldDef<ChatDraft> kPredictionFields[] = {
    required("type", only_words_type(kContentWords), "Only content."),
    required("content", kContent, "The text, as a string or parts.",
             [](const FieldValue& v, ChatDraft& t) { t.options.prediction = read_content(v); }),
};

// The older and the other servers' switches for reasoning stand after reasoning_effort.
void ask_for_effort(const std::string& effort, ChatDraft& draft) {
  auto& asked = draft.turn.reasoning_effort;
  if (!asked) asked = effort;
}

void switch_reasoning(bool is_on, ChatDraft& draft) {
  ask_for_effort(is_on ? "medium" : "none", draft);
}

constexpr FieldDef<ChatDraft> kReasoningFields[] = {
    field("effort", word_type(kReasoningEfforts), "As reasoning_effort.",
          [](const FieldValue& v, ChatDraft& t) { ask_for_effort(v.text(), t); }),
    field("enabled", kBoolean, "Whether the model reasons.",
          [](const FieldValue& v, ChatDraft& t) { switch_reasoning(v.boolean(), t); }),
    field("exclude", kOnlyFalse, "Only false.", kOff),
    ignored("summary", kAnyText, "The reasoning comes whole."),
    refused("max_tokens", "use max_completion_tokens"),
};

constexpr std::string_view kThinkingWords[] = {"enabled", "disabled", "adaptive", "auto"};

constexpr FieldDef<ChatDraft> kThinkingFields[] = {
    required("type", word_type(kThinkingWords), "adaptive and auto leave it to the model.",
             [](const FieldValue& v, ChatDraft& t) {
               if (v.text() == "enabled" || v.text() == "disabled") {
                 switch_reasoning(v.text() == "enabled", t);
               }
             }),
    field("clear_thinking", kBoolean,
          "The variable of this name of a template that leaves out earlier reasoning.",
          store<&ChatDraft::clear_thinking>),
    refused("budget_tokens", "use max_completion_tokens"),
};

constexpr FieldDef<ChatDraft> kChatFields[] = {
    required(
        "messages", kMessages, "The conversation so far; content is a string or parts of text.",
        [](const FieldValue& v, ChatDraft& t) { t.input.messages = read_messages(v, t.warnings); }),
    field("max_completion_tokens", kOutputTokens, generation_option("max_tokens").help,
          {.when_unset = "the model's, else the rest of the context"},
          store<&ChatDraft::max_completion_tokens>),
    field("max_tokens", kOutputTokens, "The older name of it.",
          {.alias_of = "max_completion_tokens"}, store<&ChatDraft::max_tokens>),
    field("logprobs", kBoolean, "Report each token's log-probability.", kOff,
          store<ChatDraft, &ChatDraft::logprobs>),
    field("top_logprobs", kNumTopLogprobs,
          "Alternatives reported beside each token; needs logprobs.",
          store<&ChatDraft::asked_top_logprobs>),
    field("n_probs", kNumTopLogprobs,
          "llama.cpp's name: alternatives reported beside each token; 0: none.",
          store<&ChatDraft::num_probabilities>),
    field("tools", kTools, "Functions that the model may call, as the template shows them to it.",
          [](const FieldValue& v, ChatDraft& t) { t.input.tools_json = read_tools(v, t.turn); }),
    field("tool_choice", kToolChoices,
          "Whether calls may come (auto), must come (required, or one of the named function), or "
          "can't (none, which hides the tools).",
          {.by_default = "auto"},
          [](const FieldValue& v, ChatDraft& t) { read_tool_choice(v, t.turn); }),
    field("parallel_tool_calls", kBoolean,
          "Whether an answer may have several calls, where the template can write them.", kOn,
          [](const FieldValue& v, ChatDraft& t) { t.turn.parallel_tool_calls = v.boolean(); }),
    field("documents", kObjects, "Objects that the template shows to the model.",
          [](const FieldValue& v, ChatDraft& t) { t.input.documents_json = to_json(v.json()); }),
    field("chat_template_kwargs", kAnyObject, "Further variables of the template.",
          [](const FieldValue& v, ChatDraft& t) {
            t.input.kwargs_json = read_template_variables(v);
          }),
    field("add_generation_prompt", kBoolean, "End the prompt where the answer begins.", kOn,
          [](const FieldValue& v, ChatDraft& t) { t.input.add_generation_prompt = v.boolean(); }),
    field("continue_final_message", kBoolean,
          "The answer goes on with the last message; add_generation_prompt must be false.", kOff,
          [](const FieldValue& v, ChatDraft& t) { t.input.continue_final_message = v.boolean(); }),
    field("add_special_tokens", kOnlyFalse, "Only false: the template writes them.", kOff),
    object<kPredictionFields>(
        "prediction",
        "A text that the answer will mostly repeat: drafts for it, which never change it."),
    field("modalities", kModalities, "Only [\"text\"]."),
    field("echo", kOnlyFalse, "Only false.", kOff),
    field("reasoning_effort", word_type(kReasoningEfforts),
          "How much the model reasons, where its template has a switch: none turns it off.",
          [](const FieldValue& v, ChatDraft& t) { t.turn.reasoning_effort = v.text(); }),
    object<kReasoningFields>(
        "reasoning", "OpenRouter's way to ask for reasoning; reasoning_effort goes before it."),
    object<kThinkingFields>("thinking",
                            "Whether the model reasons, as Z.ai, DeepSeek and Anthropic have it."),
    field("enable_thinking", kBoolean, "Whether the model reasons, as DashScope has it.",
          [](const FieldValue& v, ChatDraft& t) { switch_reasoning(v.boolean(), t); }),
    field("chat_template_args", kAnyObject, "Baseten's name of it.",
          {.alias_of = "chat_template_kwargs"},
          [](const FieldValue& v, ChatDraft& t) {
            t.input.kwargs_json = read_template_variables(v);
          }),
};

void combine_fields(ChatDraft& draft) {
  if (draft.clear_thinking) {
    add_template_variable("clear_thinking", Json(*draft.clear_thinking), draft.input);
  }
  if (draft.max_tokens && draft.max_completion_tokens &&
      *draft.max_tokens != *draft.max_completion_tokens) {
    throw invalid_field("max_tokens", "differs from max_completion_tokens, give one of them");
  }
  if (draft.max_tokens) draft.options.max_tokens = draft.max_tokens;
  if (draft.max_completion_tokens) draft.options.max_tokens = draft.max_completion_tokens;
  if (draft.num_probabilities > 0 && !draft.asked_top_logprobs) {
    draft.logprobs = true;
    draft.asked_top_logprobs = draft.num_probabilities;
  }
  draft.top_logprobs = draft.asked_top_logprobs.value_or(0);
  if (draft.top_logprobs > 0 && !draft.logprobs) {
    throw invalid_field("top_logprobs", "only allowed when logprobs is true");
  }
  check_stream_fields(draft.generation.streaming);
  check_penalty_fields(draft.generation, draft.options);
  check_logprob_fields(draft.options, draft.logprobs);
  check_continuation(draft.input);
}

}  // namespace

ChatRequest parse_chat_request(const Json& body, const RequestTerms& terms) {
  ChatDraft draft;
  RequestReader reader(body, terms);
  read_generation(reader, draft);
  reader.read<ChatDraft>(kChatFields, draft);
  read_client_fields(FieldLevel::chat, reader);
  reader.finish();
  draft.turn.make_call_id = [] { return random_id("call_"); };
  combine_fields(draft);
  finish_chat_request(body, draft);
  return draft;
}

void finish_chat_request(const Json& body, ChatRequest& request) {
  finish_generation(body, request);
  if (const std::string problem = tool_choice_problem(request.turn); !problem.empty()) {
    throw RequestError("tool_choice", ErrorReason::invalid_value, problem);
  }
  if (request.turn.tool_choice == ToolChoice::none) request.input.tools_json.clear();
}

FieldList chat_request_fields() {
  FieldList list = common_and_own_fields<kChatFields>();
  append_client_fields(FieldLevel::chat, list);
  append_generation_fields(list);
  return list;
}

}  // namespace paceline
