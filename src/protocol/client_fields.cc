#include "protocol/client_fields.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace paceline {
namespace {

constexpr FieldType kNothing = {
    .kind = FieldKind::array, .max = 0, .is_part_of_api = true, .expected = "an empty array"};
constexpr FieldType kAnyList = {.kind = FieldKind::array};
constexpr FieldType kObjectList = array_type(kAnyObject, 0, kNoMaximum);
constexpr FieldType kTextList = array_type(kAnyText, 0, kNoMaximum);

struct Row {
  FieldLevel level;
  std::string_view name;
  FieldType type = kAnyValue;
  FieldUse use = FieldUse::accepted;
  std::string_view help;
};

constexpr std::string_view kOtherServers = "What other servers add to their answers.";
constexpr std::string_view kNoMarks = "Prompts are cached without marks.";

// Sources: OpenAI's specification and clients; LiteLLM, LangChain, pydantic-ai and openai-agents;
// OpenRouter's, DashScope's, Z.ai's, SGLang's and Mistral's documentation.
struct Table {
  using enum FieldLevel;
  using enum FieldUse;
  static constexpr Row kRows[] = {
      {request, "user", kAnyText, accepted, "The caller's own mark."},
      {request, "metadata", kAnyObject, accepted, "The caller's own notes."},
      {request, "store", kBoolean, accepted, "Nothing is ever stored."},
      {request, "service_tier", kAnyText, accepted, "There is one tier."},
      {request, "safety_identifier", kAnyText, accepted, "The caller's own mark."},
      {request, "session_id", kAnyText, accepted, "The caller's own mark."},
      {request, "prompt_cache_key", kAnyText, accepted, "Cached prompts are found without it."},
      {request, "prompt_cache_retention", kAnyText, accepted,
       "Cached prompts stay until their room is needed."},
      {request, "prompt_cache_options", kAnyObject, accepted,
       "Cached prompts are found without them."},
      {request, "cache_control", kAnyObject, accepted, kNoMarks},
      {request, "request_id", kAnyText, accepted,
       "The header x-request-id is what names a request."},
      {request, "provider", kAnyObject, accepted, "There is one provider, this server."},
      {request, "models", kTextList, accepted,
       "Other models to fall back on; this server has one."},
      {request, "route", kAnyText, accepted, "There is one way to the model."},

      {chat, "verbosity", kAnyText, accepted, "The model has one."},
      {chat, "tool_stream", kBoolean, accepted, "A stream always has calls in pieces."},
      {chat, "mm_processor_kwargs", kAnyObject, accepted, "Messages have no images."},
      {chat, "include_reasoning", kOnlyTrue, implemented, "Only true: reasoning is sent."},
      {chat, "separate_reasoning", kOnlyTrue, implemented,
       "Only true: reasoning has its own member."},
      {chat, "stream_reasoning", kOnlyTrue, implemented, "Only true: reasoning is streamed."},
      {chat, "transforms", kNothing, implemented, "Only []: nothing is cut out of a prompt."},
      {chat, "plugins", kNothing, implemented, "Only []."},
      {chat, "enable_search", kOnlyFalse, implemented, "Only false."},
      {chat, "safe_prompt", kOnlyFalse, implemented, "Only false: no prompt is added."},
      {chat, "thinking_budget", kAnyValue, refused, "use max_completion_tokens"},
      {chat, "chat_template", kAnyValue, refused,
       "templates come with the model or by --chat-template"},
      {chat, "audio", kAnyValue, refused, ""},
      {chat, "web_search_options", kAnyValue, refused, ""},
      {chat, "moderation", kAnyValue, refused, ""},
      {chat, "functions", kAnyValue, refused, "use tools"},
      {chat, "function_call", kAnyValue, refused, "use tool_choice"},

      {stream_options, "include_obfuscation", kBoolean, accepted, "Nothing is padded."},

      {message, "annotations", kAnyList, accepted,
       "Citations of web searches; templates have no place for them."},
      {message, "cache_control", kAnyObject, accepted, kNoMarks},
      {message, "id", kAnyText, accepted, "Messages are known by their place."},
      {message, "phase", kAnyText, accepted, "Templates have no place for it."},
      {message, "parsed", kAnyValue, accepted, "The content as OpenAI's client has read it."},
      {message, "extra_content", kAnyObject, accepted, kOtherServers},
      {message, "provider_specific_fields", kAnyObject, accepted, kOtherServers},
      {message, "provider_metadata", kAnyObject, accepted, kOtherServers},
      {message, "providerMetadata", kAnyObject, accepted, kOtherServers},
      {message, "providerOptions", kAnyObject, accepted, "Options of other servers."},
      {message, "reasoning_opaque", kAnyText, accepted, kOtherServers},
      {message, "thought_signature", kAnyText, accepted, kOtherServers},
      {message, "metadata", kAnyObject, accepted, "The caller's own notes."},
      {message, "images", kNothing, implemented, "Only []."},
      {message, "prefix", kOnlyFalse, implemented, "Only false: use continue_final_message."},
      {message, "partial", kOnlyFalse, implemented, "Only false: use continue_final_message."},
      {message, "audio", kAnyValue, refused, ""},

      {part, "cache_control", kAnyObject, accepted, kNoMarks},
      {part, "prompt_cache_breakpoint", kAnyObject, accepted, kNoMarks},
      {part, "id", kAnyText, accepted, "Parts are known by their place."},
      {part, "annotations", kAnyList, accepted,
       "Citations of web searches; templates have no place for them."},
      {part, "citations", kAnyList, accepted,
       "Citations of web searches; templates have no place for them."},
      {part, "extra_content", kAnyObject, accepted, kOtherServers},
      {part, "provider_specific_fields", kAnyObject, accepted, kOtherServers},
      {part, "providerOptions", kAnyObject, accepted, "Options of other servers."},
      {part, "thought_signature", kAnyText, accepted, kOtherServers},

      {tool, "cache_control", kAnyObject, accepted, kNoMarks},
      {tool, "metadata", kAnyObject, accepted, "The caller's own notes."},
      {tool, "provider_specific_fields", kAnyObject, accepted, kOtherServers},
      {tool, "defer_loading", kOnlyFalse, accepted, "Only false: the model sees all tools."},

      {tool_function, "cache_control", kAnyObject, accepted, kNoMarks},
      {tool_function, "provider_specific_fields", kAnyObject, accepted, kOtherServers},
      {tool_function, "defer_loading", kOnlyFalse, accepted,
       "Only false: the model sees all tools."},
      {tool_function, "return", kAnyValue, implemented,
       "A JSON Schema of the result, where the template shows it."},
      {tool_function, "returns", kAnyValue, implemented,
       "A JSON Schema of the result, where the template shows it."},
      {tool_function, "response", kAnyValue, implemented,
       "A JSON Schema of the result, where the template shows it."},
      {tool_function, "input_examples", kAnyList, implemented,
       "Examples of arguments, where the template shows them."},

      {call,
       "index",
       {.kind = FieldKind::integer},
       accepted,
       "The place of the call, as streams have it."},
      {call, "cache_control", kAnyObject, accepted, kNoMarks},
      {call, "extra_content", kAnyObject, accepted, kOtherServers},
      {call, "provider_specific_fields", kAnyObject, accepted, kOtherServers},
      {call, "thought_signature", kAnyText, accepted, kOtherServers},
      {call, "caller", kAnyObject, accepted, kOtherServers},
      {call, "status", kAnyText, accepted, kOtherServers},

      {call_function, "parsed_arguments", kAnyValue, accepted,
       "The arguments as OpenAI's client has read them."},
      {call_function, "extra_content", kAnyObject, accepted, kOtherServers},
      {call_function, "provider_specific_fields", kAnyObject, accepted, kOtherServers},
      {call_function, "thought_signature", kAnyText, accepted, kOtherServers},

      {messages, "betas", kTextList, accepted, "What is here needs no mark."},
      {messages, "inference_geo", kAnyText, accepted, "There is one place, this server."},
      {messages, "speed", kAnyText, accepted, "There is one."},
      {messages, "diagnostics", kAnyObject, accepted, "Answers have none."},
      {messages, "user_profile_id", kAnyText, accepted, "The caller's own mark."},
      {messages, "workspace_id", kAnyText, accepted, "The caller's own mark."},
      {messages, "billing_policy", kAnyObject, accepted, "Nothing is billed."},
      {messages, "fallback_credit_token", kAnyText, accepted, "Nothing is billed."},
      {messages, "fallbacks", kObjectList, accepted,
       "Other models to fall back on; the one asked for answers."},
      {messages, "container", kAnyValue, refused, "tools run at the client"},
      {messages, "mcp_servers", kAnyValue, refused, "tools run at the client"},
      {messages, "compaction", kAnyValue, refused, ""},
      {messages, "thread", kAnyValue, refused, "send the whole conversation in messages"},

      {block, "cache_control", kAnyObject, accepted, kNoMarks},
      {block, "citations", kAnyValue, accepted, "Templates have no place for them."},
      {block, "caller", kAnyObject, accepted, "Templates have no place for it."},
      {block, "toolset_name", kAnyText, accepted, "Templates have no place for it."},
      {block, "parsed_output", kAnyValue, accepted, "The text as Anthropic's client has read it."},

      {custom_tool, "cache_control", kAnyObject, accepted, kNoMarks},
      {custom_tool, "defer_loading", kBoolean, accepted, "The model sees all tools at once."},
      {custom_tool, "eager_input_streaming", kBoolean, accepted,
       "A stream always has inputs in pieces."},
      {custom_tool, "allowed_callers", kTextList, accepted, "Only the model calls tools."},
  };
};

constexpr size_t kNumLevels = static_cast<size_t>(FieldLevel::custom_tool) + 1;
using Levels = std::array<std::vector<FieldDef<ClientField>>, kNumLevels>;

Levels by_level() {
  Levels levels;
  for (const Row& row : Table::kRows) {
    levels[static_cast<size_t>(row.level)].push_back(
        FieldInfo{{}, row.name, row.type, row.help, row.use});
  }
  return levels;
}

}  // namespace

FieldTable<ClientField> client_fields(FieldLevel level) {
  static const Levels levels = by_level();
  return levels[static_cast<size_t>(level)];
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
