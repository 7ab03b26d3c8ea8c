#include "protocol/request_reader.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr FieldType kObjectList = array_type(kAnyObject, 0, kNoMaximum);
constexpr FieldType kTextList = array_type(kAnyText, 0, kNoMaximum);

constexpr std::string_view kOtherServers = "What other servers add to their answers.";
constexpr std::string_view kNoMarks = "Prompts are cached without marks.";

// Sources: OpenAI's specification and clients; LiteLLM, LangChain, pydantic-ai and openai-agents;
// OpenRouter's, DashScope's, Z.ai's, SGLang's and Mistral's documentation.
constexpr FieldDef<ClientField> kRequestRows[] = {
    ignored("user", kAnyText, "The caller's own mark."),
    ignored("metadata", kAnyObject, "The caller's own notes."),
    ignored("store", kBoolean, "Nothing is ever stored."),
    ignored("service_tier", kAnyText, "There is one tier."),
    ignored("safety_identifier", kAnyText, "The caller's own mark."),
    ignored("session_id", kAnyText, "The caller's own mark."),
    ignored("prompt_cache_key", kAnyText, "Cached prompts are found without it."),
    ignored("prompt_cache_retention", kAnyText, "Cached prompts stay until their room is needed."),
    ignored("prompt_cache_options", kAnyObject, "Cached prompts are found without them."),
    ignored("cache_control", kAnyObject, kNoMarks),
    ignored("request_id", kAnyText, "The header x-request-id is what names a request."),
    ignored("provider", kAnyObject, "There is one provider, this server."),
    ignored("models", kTextList, "Other models to fall back on; this server has one."),
    ignored("route", kAnyText, "There is one way to the model."),
};

constexpr FieldDef<ClientField> kChatRows[] = {
    ignored("verbosity", kAnyText, "The model has one."),
    ignored("tool_stream", kBoolean, "A stream always has calls in pieces."),
    ignored("mm_processor_kwargs", kAnyObject, "Messages have no images."),
    field("include_reasoning", kOnlyTrue, "Only true: reasoning is sent."),
    field("separate_reasoning", kOnlyTrue, "Only true: reasoning has its own member."),
    field("stream_reasoning", kOnlyTrue, "Only true: reasoning is streamed."),
    field("transforms", kNoItems, "Only []: nothing is cut out of a prompt."),
    field("plugins", kNoItems, "Only []."),
    field("enable_search", kOnlyFalse, "Only false."),
    field("safe_prompt", kOnlyFalse, "Only false: no prompt is added."),
    refused("thinking_budget", "use max_completion_tokens"),
    refused("chat_template", "templates come with the model or by --chat-template"),
    refused("audio"),
    refused("web_search_options"),
    refused("moderation"),
    refused("functions", "use tools"),
    refused("function_call", "use tool_choice"),
};

constexpr FieldDef<ClientField> kStreamOptionsRows[] = {
    ignored("include_obfuscation", kBoolean, "Nothing is padded."),
};

constexpr FieldDef<ClientField> kMessageRows[] = {
    ignored("annotations", kAnyList,
            "Citations of web searches; templates have no place for them."),
    ignored("cache_control", kAnyObject, kNoMarks),
    ignored("id", kAnyText, "Messages are known by their place."),
    ignored("phase", kAnyText, "Templates have no place for it."),
    ignored("parsed", "The content as OpenAI's client has read it."),
    ignored("extra_content", kAnyObject, kOtherServers),
    ignored("provider_specific_fields", kAnyObject, kOtherServers),
    ignored("provider_metadata", kAnyObject, kOtherServers),
    ignored("providerMetadata", kAnyObject, kOtherServers),
    ignored("providerOptions", kAnyObject, "Options of other servers."),
    ignored("reasoning_opaque", kAnyText, kOtherServers),
    ignored("thought_signature", kAnyText, kOtherServers),
    ignored("metadata", kAnyObject, "The caller's own notes."),
    field("images", kNoItems, "Only []."),
    field("prefix", kOnlyFalse, "Only false: use continue_final_message."),
    field("partial", kOnlyFalse, "Only false: use continue_final_message."),
    refused("audio"),
};

constexpr FieldDef<ClientField> kPartRows[] = {
    ignored("cache_control", kAnyObject, kNoMarks),
    ignored("prompt_cache_breakpoint", kAnyObject, kNoMarks),
    ignored("id", kAnyText, "Parts are known by their place."),
    ignored("annotations", kAnyList,
            "Citations of web searches; templates have no place for them."),
    ignored("citations", kAnyList, "Citations of web searches; templates have no place for them."),
    ignored("extra_content", kAnyObject, kOtherServers),
    ignored("provider_specific_fields", kAnyObject, kOtherServers),
    ignored("providerOptions", kAnyObject, "Options of other servers."),
    ignored("thought_signature", kAnyText, kOtherServers),
};

constexpr FieldDef<ClientField> kToolRows[] = {
    ignored("cache_control", kAnyObject, kNoMarks),
    ignored("metadata", kAnyObject, "The caller's own notes."),
    ignored("provider_specific_fields", kAnyObject, kOtherServers),
    ignored("defer_loading", kOnlyFalse, "Only false: the model sees all tools."),
};

constexpr FieldDef<ClientField> kToolFunctionRows[] = {
    ignored("cache_control", kAnyObject, kNoMarks),
    ignored("provider_specific_fields", kAnyObject, kOtherServers),
    ignored("defer_loading", kOnlyFalse, "Only false: the model sees all tools."),
    field("return", kAnyValue, "A JSON Schema of the result, where the template shows it."),
    field("returns", kAnyValue, "A JSON Schema of the result, where the template shows it."),
    field("response", kAnyValue, "A JSON Schema of the result, where the template shows it."),
    field("input_examples", kAnyList, "Examples of arguments, where the template shows them."),
};

constexpr FieldDef<ClientField> kCallRows[] = {
    ignored("index", {.kind = FieldKind::integer}, "The place of the call, as streams have it."),
    ignored("cache_control", kAnyObject, kNoMarks),
    ignored("extra_content", kAnyObject, kOtherServers),
    ignored("provider_specific_fields", kAnyObject, kOtherServers),
    ignored("thought_signature", kAnyText, kOtherServers),
    ignored("caller", kAnyObject, kOtherServers),
    ignored("status", kAnyText, kOtherServers),
};

constexpr FieldDef<ClientField> kCallFunctionRows[] = {
    ignored("parsed_arguments", "The arguments as OpenAI's client has read them."),
    ignored("extra_content", kAnyObject, kOtherServers),
    ignored("provider_specific_fields", kAnyObject, kOtherServers),
    ignored("thought_signature", kAnyText, kOtherServers),
};

constexpr FieldDef<ClientField> kMessagesRows[] = {
    ignored("betas", kTextList, "What is here needs no mark."),
    ignored("inference_geo", kAnyText, "There is one place, this server."),
    ignored("speed", kAnyText, "There is one."),
    ignored("diagnostics", kAnyObject, "Answers have none."),
    ignored("user_profile_id", kAnyText, "The caller's own mark."),
    ignored("workspace_id", kAnyText, "The caller's own mark."),
    ignored("billing_policy", kAnyObject, "Nothing is billed."),
    ignored("fallback_credit_token", kAnyText, "Nothing is billed."),
    ignored("fallbacks", kObjectList, "Other models to fall back on; the one asked for answers."),
    refused("container", "tools run at the client"),
    refused("mcp_servers", "tools run at the client"),
    refused("compaction"),
    refused("thread", "send the whole conversation in messages"),
};

constexpr FieldDef<ClientField> kBlockRows[] = {
    ignored("cache_control", kAnyObject, kNoMarks),
    ignored("citations", "Templates have no place for them."),
    ignored("caller", kAnyObject, "Templates have no place for it."),
    ignored("toolset_name", kAnyText, "Templates have no place for it."),
    ignored("parsed_output", "The text as Anthropic's client has read it."),
};

constexpr FieldDef<ClientField> kCustomToolRows[] = {
    ignored("cache_control", kAnyObject, kNoMarks),
    ignored("defer_loading", kBoolean, "The model sees all tools at once."),
    ignored("eager_input_streaming", kBoolean, "A stream always has inputs in pieces."),
    ignored("allowed_callers", kTextList, "Only the model calls tools."),
};

// In the order of the levels.
constexpr FieldTable<ClientField> kLevels[] = {
    kRequestRows,      kChatRows, kStreamOptionsRows, kMessageRows,  kPartRows,  kToolRows,
    kToolFunctionRows, kCallRows, kCallFunctionRows,  kMessagesRows, kBlockRows, kCustomToolRows,
};

}  // namespace

FieldTable<ClientField> client_fields(FieldLevel level) {
  return kLevels[static_cast<size_t>(level)];
}

void read_client_fields(FieldLevel level, RequestReader& reader) {
  ClientField unused;
  reader.read(client_fields(level), unused);
}

void append_client_fields(FieldLevel level, FieldList& list) {
  append_fields(client_fields(level), list);
}

Json without_client_fields(const Json& object, FieldLevel level) {
  Json::Object members = *object.object();
  const auto fields = client_fields(level);
  std::erase_if(members, [&](const Json::Member& member) {
    return std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
      return field.use == FieldUse::accepted && field.name == member.first;
    });
  });
  return Json(std::move(members));
}

}  // namespace paceline
