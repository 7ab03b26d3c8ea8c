#include "protocol/chat_request.h"

#include "base/json_writer.h"
#include "base/request_error.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"
#include "protocol/client_fields.h"
#include "protocol/response.h"

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
    required("type", only_words_type(kContentWords), "Only content."),
    required(
        "content", kContent,
        [](const FieldValue& v, ChatDraft& t) { t.request.options.prediction = read_content(v); },
        "The text, as a string or parts."),
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
    field(
        "effort", word_type(kReasoningEfforts),
        [](const FieldValue& v, ChatDraft& t) { ask_for_effort(v.text(), t); },
        "As reasoning_effort."),
    field(
        "enabled", kBoolean,
        [](const FieldValue& v, ChatDraft& t) { switch_reasoning(v.boolean(), t); },
        "Whether the model reasons."),
    field("exclude", kOnlyFalse, "Only false.", kOff),
    ignored("summary", kAnyText, "The reasoning comes whole."),
    refused("max_tokens", "use max_completion_tokens"),
};

constexpr std::string_view kThinkingWords[] = {"enabled", "disabled", "adaptive", "auto"};

constexpr FieldDef<ChatDraft> kThinkingFields[] = {
    required(
        "type", word_type(kThinkingWords),
        [](const FieldValue& v, ChatDraft& t) {
          if (v.text() == "enabled" || v.text() == "disabled") {
            switch_reasoning(v.text() == "enabled", t);
          }
        },
        "adaptive and auto leave it to the model."),
    field("clear_thinking", kBoolean, store<&ChatDraft::clear_thinking>,
          "The variable of this name of a template that leaves out earlier reasoning."),
    refused("budget_tokens", "use max_completion_tokens"),
};

constexpr FieldDef<ChatDraft> kChatFields[] = {
    required(
        "messages", kMessages,
        [](const FieldValue& v, ChatDraft& t) {
          t.request.input.messages = read_messages(v, t.request.warnings);
        },
        "The conversation so far; content is a string or parts of text."),
    field("max_completion_tokens", kOutputTokens, store<&ChatDraft::max_completion_tokens>,
          generation_option("max_tokens").help,
          {.when_unset = "the model's, else the rest of the context"}),
    field("max_tokens", kOutputTokens, store<&ChatDraft::max_tokens>, "The older name of it.",
          {.alias_of = "max_completion_tokens"}),
    field("logprobs", kBoolean, store<&ChatDraft::request, &ChatRequest::logprobs>,
          "Report each token's log-probability.", kOff),
    field("top_logprobs", kNumTopLogprobs, store<&ChatDraft::top_logprobs>,
          "Alternatives reported beside each token; needs logprobs."),
    field("n_probs", kNumTopLogprobs, store<&ChatDraft::num_probabilities>,
          "llama.cpp's name: alternatives reported beside each token; 0: none."),
    field(
        "tools", kTools,
        [](const FieldValue& v, ChatDraft& t) {
          t.request.input.tools_json = read_tools(v, t.request.turn);
        },
        "Functions that the model may call, as the template shows them to it."),
    field("tool_choice", kToolChoices,
          [](const FieldValue& v, ChatDraft& t) { read_tool_choice(v, t.request.turn); },
          "Whether calls may come (auto), must come (required, or one of the named function), or "
          "can't (none, which hides the tools).",
          {.by_default = "auto"}),
    field(
        "parallel_tool_calls", kBoolean,
        [](const FieldValue& v, ChatDraft& t) { t.request.turn.parallel_tool_calls = v.boolean(); },
        "Whether an answer may have several calls, where the template can write them.", kOn),
    field(
        "documents", kObjects,
        [](const FieldValue& v, ChatDraft& t) {
          t.request.input.documents_json = to_json(v.json());
        },
        "Objects that the template shows to the model."),
    field(
        "chat_template_kwargs", kAnyObject,
        [](const FieldValue& v, ChatDraft& t) {
          t.request.input.kwargs_json = read_template_variables(v);
        },
        "Further variables of the template."),
    field(
        "add_generation_prompt", kBoolean,
        [](const FieldValue& v, ChatDraft& t) {
          t.request.input.add_generation_prompt = v.boolean();
        },
        "End the prompt where the answer begins.", kOn),
    field(
        "continue_final_message", kBoolean,
        [](const FieldValue& v, ChatDraft& t) {
          t.request.input.continue_final_message = v.boolean();
        },
        "The answer goes on with the last message; add_generation_prompt must be false.", kOff),
    field("add_special_tokens", kOnlyFalse, "Only false: the template writes them.", kOff),
    object<kPredictionFields>(
        "prediction",
        "A text that the answer will mostly repeat: drafts for it, which never change it."),
    field("modalities", kModalities, "Only [\"text\"]."),
    field("echo", kOnlyFalse, "Only false.", kOff),
    field(
        "reasoning_effort", word_type(kReasoningEfforts),
        [](const FieldValue& v, ChatDraft& t) { t.request.turn.reasoning_effort = v.text(); },
        "How much the model reasons, where its template has a switch: none turns it off."),
    object<kReasoningFields>(
        "reasoning", "OpenRouter's way to ask for reasoning; reasoning_effort goes before it."),
    object<kThinkingFields>("thinking",
                            "Whether the model reasons, as Z.ai, DeepSeek and Anthropic have it."),
    field(
        "enable_thinking", kBoolean,
        [](const FieldValue& v, ChatDraft& t) { switch_reasoning(v.boolean(), t); },
        "Whether the model reasons, as DashScope has it."),
    field("chat_template_args", kAnyObject,
          [](const FieldValue& v, ChatDraft& t) {
            t.request.input.kwargs_json = read_template_variables(v);
          },
          "Baseten's name of it.", {.alias_of = "chat_template_kwargs"}),
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
  read_generation(reader, draft.request);
  reader.read<ChatDraft>(kChatFields, draft);
  read_client_fields(FieldLevel::chat, reader);
  reader.finish();
  draft.request.turn.make_call_id = [] { return random_id("call_"); };
  combine_fields(draft);
  finish_chat_request(body, draft.request);
  return std::move(draft.request);
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
