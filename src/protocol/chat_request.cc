#include "protocol/chat_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "protocol/api_error.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"

namespace paceline {
namespace {

// What is read before it is known what it means together.
struct Draft {
  ChatRequest request;
  std::optional<int64_t> max_tokens;
  std::optional<int64_t> max_completion_tokens;
  std::optional<int32_t> top_logprobs;
  ToolChoice tool_choice = ToolChoice::automatic;
};

void read_documents(const FieldValue& value, Draft& draft) {
  for (const FieldValue& document : value.items(kMaxMessages)) document.object();
  draft.request.input.documents_json = to_json(value.json());
}

struct ResponseFormat {};

void read_response_format(const FieldValue& value, Draft&) {
  static constexpr FieldDef<ResponseFormat> kFormatFields[] = {
      {.name = "type", .help = "Only text.", .read = [](const FieldValue& v, ResponseFormat&) {
         if (v.text() != "text") v.refuse_unsupported("\"text\"");
       }}};
  ResponseFormat format;
  RequestReader reader(value);
  reader.read<ResponseFormat>(kFormatFields, format);
  reader.require("type");
  reader.finish();
}

void read_modalities(const FieldValue& value, Draft&) {
  for (const FieldValue& item : value.items(kMaxMessages)) {
    if (item.text() != "text") item.refuse_unsupported("\"text\"");
  }
}

constexpr FieldDef<Draft> kFields[] = {
    {.name = "messages",
     .help = "The conversation so far, 1 to 1024 messages; content is a string or parts of text.",
     .read = [](const FieldValue& v, Draft& t) { t.request.input.messages = read_messages(v); }},
    {.name = "max_completion_tokens",
     .help = "Stop after so many tokens; 4096 or what the context has room for by default.",
     .read = [](const FieldValue& v,
                Draft& t) { t.max_completion_tokens = v.integer(0, kMaxOutputTokens); }},
    {.name = "max_tokens",
     .help = "The older name of max_completion_tokens.",
     .read = [](const FieldValue& v, Draft& t) { t.max_tokens = v.integer(0, kMaxOutputTokens); }},
    {.name = "logprobs",
     .help = "Report each token's log-probability.",
     .read = [](const FieldValue& v, Draft& t) { t.request.logprobs = v.boolean(); }},
    {.name = "top_logprobs",
     .help = "With so many alternatives, 0 to 20; needs logprobs.",
     .read =
         [](const FieldValue& v, Draft& t) {
           t.top_logprobs = static_cast<int32_t>(v.integer(0, kMaxTopLogprobs));
         }},
    {.name = "tools",
     .help = "Functions that the template shows to the model; a call comes as text.",
     .read = [](const FieldValue& v, Draft& t) { t.request.input.tools_json = read_tools(v); }},
    {.name = "tool_choice",
     .help = "Only auto, and none, which hides the tools.",
     .read = [](const FieldValue& v, Draft& t) { t.tool_choice = read_tool_choice(v); }},
    {.name = "parallel_tool_calls",
     .help = "Only true.",
     .read = [](const FieldValue& v, Draft&) { v.only(true); }},
    {.name = "documents",
     .help = "Objects that the template shows to the model.",
     .read = read_documents},
    {.name = "chat_template_kwargs",
     .help = "Further variables of the template.",
     .read = [](const FieldValue& v,
                Draft& d) { d.request.input.kwargs_json = read_template_variables(v); }},
    {.name = "add_generation_prompt",
     .help = "End the prompt where the answer begins; true by default.",
     .read = [](const FieldValue& v,
                Draft& t) { t.request.input.add_generation_prompt = v.boolean(); }},
    {.name = "continue_final_message",
     .help = "Only false.",
     .read = [](const FieldValue& v, Draft&) { v.only(false); }},
    {.name = "add_special_tokens",
     .help = "Only false: the template writes them.",
     .read = [](const FieldValue& v, Draft&) { v.only(false); }},
    {.name = "response_format", .help = "Only {\"type\": \"text\"}.", .read = read_response_format},
    {.name = "modalities", .help = "Only [\"text\"].", .read = read_modalities},
    {.name = "verbosity",
     .use = FieldUse::accepted,
     .help = "The model has one.",
     .read = [](const FieldValue& v, Draft&) { v.text(); }},
    {.name = "chat_template",
     .use = FieldUse::refused,
     .help = "templates come with the model or by --chat-template"},
    {.name = "reasoning_effort", .use = FieldUse::refused, .help = "see chat_template_kwargs"},
    {.name = "audio", .use = FieldUse::refused},
    {.name = "prediction", .use = FieldUse::refused},
    {.name = "web_search_options", .use = FieldUse::refused},
    {.name = "functions", .use = FieldUse::refused, .help = "use tools"},
    {.name = "function_call", .use = FieldUse::refused, .help = "use tool_choice"},
};

// Fields that need one another.
void settle(Draft& draft) {
  ChatRequest& request = draft.request;
  if (draft.max_tokens && draft.max_completion_tokens &&
      *draft.max_tokens != *draft.max_completion_tokens) {
    throw RequestError("max_tokens", "invalid_value",
                       "max_tokens: differs from max_completion_tokens, give one of them");
  }
  if (draft.max_tokens) request.max_tokens = *draft.max_tokens;
  if (draft.max_completion_tokens) request.max_tokens = *draft.max_completion_tokens;
  if (draft.top_logprobs && *draft.top_logprobs > 0 && !request.logprobs) {
    throw RequestError("top_logprobs", "invalid_value",
                       "top_logprobs: only allowed when logprobs is true");
  }
  request.top_logprobs = draft.top_logprobs.value_or(0);
  if (draft.tool_choice == ToolChoice::none) request.input.tools_json.clear();
  check_stream_fields(request.generation.streaming);
}

}  // namespace

ChatRequest parse_chat_request(const Json& body) {
  Draft draft;
  RequestReader reader(body);
  reader.read(common_fields(), draft.request.common);
  reader.read(sampling_fields(), draft.request.sampling);
  reader.read(generation_fields(), draft.request.generation);
  reader.read<Draft>(kFields, draft);
  reader.finish();
  reader.require("messages");
  settle(draft);
  return std::move(draft.request);
}

std::vector<FieldInfo> chat_request_fields() {
  std::vector<FieldInfo> list;
  append_fields(common_fields(), list);
  append_fields<Draft>(kFields, list);
  append_fields(generation_fields(), list);
  append_fields(sampling_fields(), list);
  return list;
}

}  // namespace paceline
