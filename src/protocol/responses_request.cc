#include "protocol/responses_request.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "protocol/request_reader.h"
#include "protocol/response.h"

namespace paceline::responses {
namespace {

// Fields as read, before dependent ones are combined.
struct Draft : Request {
  std::optional<FieldValue> instructions, input, previous, tool_choice;
  std::optional<int32_t> top_logprobs;
};

constexpr std::string_view kSummaryWords[] = {"auto", "concise", "detailed"};

constexpr FieldDef<Draft> kReasoningFields[] = {
    field("effort", word_type(kReasoningEfforts),
          "How much the model reasons, where its template has a switch: none turns it off.",
          [](const FieldValue& v, Draft& t) { t.chat.turn.reasoning_effort = v.text(); }),
    field("summary", word_type(kSummaryWords),
          "The reasoning, whole, stands in the summary of its item instead of the content.",
          [](const FieldValue&, Draft& t) { t.summarises_reasoning = true; }),
    field("generate_summary", word_type(kSummaryWords), "The older name of it.",
          {.alias_of = "summary"},
          [](const FieldValue&, Draft& t) { t.summarises_reasoning = true; }),
    ignored("context", kAnyText, "The template says which earlier reasoning it shows."),
    ignored("mode", kAnyText, "There is one."),
};

struct TextFormat {
  std::string type;
  AskedConstraint schema;
  bool is_strict = false;
};

constexpr FieldDef<TextFormat> kFormatFields[] = {
    required("type", only_words_type(kFormatWords),
             "json_object: any JSON object. json_schema: JSON that the schema accepts.",
             store<&TextFormat::type>),
    field("name", kAnyText, "What the schema is called; changes nothing."),
    field("description", kAnyText, "Changes nothing: the prompt says it."),
    field("strict", kBoolean, kStrictSchemaHelp, kOff, store<&TextFormat::is_strict>),
    field("schema", kAnyObject, "The schema.",
          [](const FieldValue& v, TextFormat& t) {
            t.schema.spec = {.kind = ConstraintSpec::Kind::json_schema, .text = to_json(v.json())};
            t.schema.field = v.path();
          }),
};

void read_format(const FieldValue& value, Draft& draft) {
  TextFormat format;
  read_members<kFormatFields>(value, format);
  AskedConstraint& asked = draft.chat.generation.constraint;
  if (format.type == "json_object") {
    asked = {.spec = ConstraintSpec{.kind = ConstraintSpec::Kind::json_object},
             .field = value.path()};
  } else if (format.type == "json_schema") {
    RequestReader(value).require("schema");
    format.schema.spec->strict = format.is_strict;
    format.schema.spec->best_effort = !format.is_strict;
    asked = std::move(format.schema);
  }
}

constexpr FieldDef<Draft> kTextFields[] = {
    field("format", object_type(fields_of<kFormatFields>), "What the text must be.", read_format),
    ignored("verbosity", kAnyText, "The model has one."),
};

constexpr std::string_view kIncludable[] = {"reasoning.encrypted_content",
                                            "message.output_text.logprobs",
                                            "file_search_call.results",
                                            "web_search_call.results",
                                            "web_search_call.action.sources",
                                            "message.input_image.image_url",
                                            "computer_call_output.output.image_url",
                                            "code_interpreter_call.outputs"};
constexpr FieldType kIncluded = only_words_type(kIncludable);

void read_include(const FieldValue& value, Draft& draft) {
  for (const FieldValue& item : value.items()) {
    draft.seals_reasoning |= item.text() == "reasoning.encrypted_content";
    draft.chat.logprobs |= item.text() == "message.output_text.logprobs";
  }
}

constexpr std::string_view kTruncationWords[] = {"auto", "disabled"};

constexpr FieldDef<Draft> kPromptFields[] = {
    field("input", kInput,
          "What the user says, or items: messages, calls and their outputs, reasoning.",
          store<&Draft::input>),
    field("instructions", kAnyText, "The system prompt, of this answer only.",
          store<&Draft::instructions>),
    field("previous_response_id", kAnyText, "A stored response that the conversation goes on from.",
          store<&Draft::previous>),
    field("tools", kTools,
          "Functions and custom tools that the model may call, as the template shows them.",
          [](const FieldValue& v, Draft& t) { read_tools(v, t.chat, t.tools); }),
    field("tool_choice", kToolChoice,
          "Whether calls may come (auto), must come (required, or of the named tool), or can't "
          "(none, which hides the tools); allowed_tools says which.",
          {.by_default = "auto"}, store<&Draft::tool_choice>),
    field("parallel_tool_calls", kBoolean,
          "Whether an answer may have several calls, where the template can write them.", kOn,
          [](const FieldValue& v, Draft& t) { t.chat.turn.parallel_tool_calls = v.boolean(); }),
    object<kReasoningFields>("reasoning", "Whether and how much the model reasons."),
    object<kTextFields>("text", "What the text of the answer must be."),
    field("truncation", word_type(kTruncationWords),
          "auto: the oldest messages are left out of a prompt that exceeds the context.",
          {.by_default = "disabled"},
          [](const FieldValue& v, Draft& t) { t.chat.drops_oldest = v.text() == "auto"; }),
    field("chat_template_kwargs", kAnyObject, "Further variables of the template.",
          [](const FieldValue& v, Draft& t) {
            t.chat.input.kwargs_json = read_template_variables(v);
          }),
    ignored("personality", kAnyText, "There is one."),
    ignored("image", kAnyObject, "Images aren't read."),
    refused("conversation", "use previous_response_id, or send the items"),
    refused("prompt", "use instructions and input"),
};

constexpr FieldDef<Draft> kStreamFields[] = {
    ignored("include_obfuscation", kBoolean, "Nothing is padded."),
};

constexpr FieldType kMetadataText = text_type(0, 512);
constexpr FieldType kMetadata = {.kind = FieldKind::object, .max = 16, .item = &kMetadataText};

constexpr FieldDef<Draft> kAnswerFields[] = {
    field("stream", kBoolean, "Answer in events as the text comes.", kOff,
          [](const FieldValue& v, Draft& t) { t.chat.generation.streaming.stream = v.boolean(); }),
    object<kStreamFields>("stream_options", "Changes nothing."),
    field("max_output_tokens", kOutputTokens, "The most tokens of reasoning, text and calls.",
          {.when_unset = "the model's, else the rest of the context"},
          [](const FieldValue& v, Draft& t) { t.chat.options.max_tokens = v.integer(); }),
    field("store", kBoolean, "Keep the response in memory, for previous_response_id and GET.", kOn,
          store<Draft, &Draft::is_stored>),
    field("background", kBoolean,
          "Answer at once that the response is queued, and compute it without the connection.",
          kOff, store<Draft, &Draft::is_background>),
    field("include", array_type(kIncluded, 0, kNoMaximum),
          "reasoning.encrypted_content: reasoning comes sealed, too. message.output_text.logprobs: "
          "log-probabilities of the text's tokens.",
          read_include),
    field("top_logprobs", kNumTopLogprobs,
          "Alternatives reported beside each token, where log-probabilities are included.",
          {.by_default = 0}, store<&Draft::top_logprobs>),
    field("metadata", kMetadata, "The caller's own notes, which the response has."),
    ignored("max_tool_calls", integer_type(1, kNoMaximum),
            "It bounds calls of tools that OpenAI runs."),
    ignored("client_metadata", kAnyObject, "The client's own notes."),
    ignored("context_management", array_type(kAnyObject, 0, kNoMaximum),
            "Nothing is compacted unasked."),
    ignored("background_options", kAnyObject,
            "Responses in the background are computed as soon as there is room."),
    ignored("access_programs", kAnyObject, "There are none."),
    refused("moderation"),
};

// A member that an answer has of its request, and what it is without one.
struct Echo {
  std::string_view name;
  std::string_view json = "null";
};

constexpr Echo kEchoes[] = {
    {"instructions"},
    {"max_output_tokens"},
    {"max_tool_calls"},
    {"parallel_tool_calls", "true"},
    {"previous_response_id"},
    {"prompt_cache_key"},
    {"prompt_cache_retention"},
    {"reasoning", R"({"effort":null,"summary":null})"},
    {"safety_identifier"},
    {"store", "true"},
    {"text", R"({"format":{"type":"text"}})"},
    {"tool_choice", R"("auto")"},
    {"tools", "[]"},
    {"top_logprobs", "0"},
    {"truncation", R"("disabled")"},
    {"user"},
    {"metadata", "{}"},
};

std::string echo_of(const Json& body) {
  std::string json;
  for (const auto& [name, otherwise] : kEchoes) {
    const Json* const value = body.find_value(name);
    fmt::format_to(std::back_inserter(json), ",\"{}\":{}", name,
                   value == nullptr ? std::string(otherwise) : to_json(*value));
  }
  return json.substr(1);
}

void read_prompt(RequestReader& reader, Draft& draft) {
  reader.read(common_fields(), draft.chat.common);
  reader.read<Draft>(kPromptFields, draft);
  read_client_fields(FieldLevel::request, reader);
}

// Makes the chat ask for a summary of what stands in it.
void ask_for_summary(const CallTerms& terms, ChatRequest& chat) {
  const std::string_view prompt =
      terms.compaction_prompt.empty() ? kCompactionPrompt : terms.compaction_prompt;
  auto& messages = chat.input.messages;
  if (!messages.empty() && messages.back().role == "user" && messages.back().json.empty()) {
    messages.back().content += "\n\n" + std::string(prompt);
  } else {
    messages.push_back({.role = "user", .content = std::string(prompt)});
  }
  chat.turn.tool_choice = ToolChoice::none;
  chat.input.tools_json.clear();
  chat.generation.constraint = {};
  chat.options.constraint.reset();
  chat.logprobs = false;
  if (!chat.options.max_tokens) chat.options.max_tokens = terms.max_compaction_tokens;
}

void combine_fields(const Json& body, const CallTerms& terms, Draft& draft) {
  ChatRequest& chat = draft.chat;
  ItemHistory& conversation = draft.conversation;
  conversation.sources = {.seal = terms.seal, .store = terms.store, .owner = terms.owner};
  if (draft.instructions) read_instructions(*draft.instructions, conversation);
  if (draft.previous) read_previous_response(*draft.previous, conversation);
  if (draft.input) read_input(*draft.input, conversation);
  finish_conversation(conversation);
  chat.input.messages = std::move(conversation.messages);
  chat.warnings.insert(chat.warnings.end(), conversation.warnings.begin(),
                       conversation.warnings.end());
  if (draft.tool_choice) read_tool_choice(*draft.tool_choice, draft.tools, chat.turn);
  if (draft.top_logprobs.value_or(0) > 0 && !chat.logprobs) {
    throw invalid_field("top_logprobs",
                        "only allowed when include has message.output_text.logprobs");
  }
  chat.top_logprobs = draft.top_logprobs.value_or(0);
  if (draft.is_background && !draft.is_stored) {
    throw invalid_field("background", "only allowed when store is true");
  }
  chat.turn.make_call_id = [] { return random_id("call_"); };
  finish_chat_request(body, chat);
  if (conversation.asks_for_compaction) ask_for_summary(terms, chat);
}

FieldList with_client_fields(FieldList list) {
  append_missing_fields(list_fields(client_fields(FieldLevel::request)), list);
  return list;
}

}  // namespace

const std::string_view kCompactionPrompt =
    "Summarise the conversation so far for an assistant that will go on with it and can't read it. "
    "Say what the user wants, with all constraints; what was done and decided, and why; the exact "
    "names, paths, values and errors that matter; what is unfinished, and the next step. Write "
    "only the summary.";

Request parse_request(const Json& body, const CallTerms& terms) {
  Draft draft;
  RequestReader reader(body, terms.limits);
  reader.read<Draft>(kAnswerFields, draft);
  read_prompt(reader, draft);
  reader.read(sampling_fields(), draft.chat.options);
  reader.read(text_fields(), draft.chat.options);
  reader.finish();
  combine_fields(body, terms, draft);
  draft.echo = echo_of(body);
  return draft;
}

Request parse_prompt(const Json& body, const CallTerms& terms) {
  Draft draft;
  RequestReader reader(body, terms.limits);
  read_prompt(reader, draft);
  reader.finish();
  combine_fields(body, terms, draft);
  return draft;
}

Request parse_compaction(const Json& body, const CallTerms& terms) {
  Request request = parse_prompt(body, terms);
  if (request.conversation.asks_for_compaction) return request;
  request.conversation.asks_for_compaction = true;
  ask_for_summary(terms, request.chat);
  return request;
}

FieldList request_fields() {
  FieldList list = list_fields(common_fields());
  append_fields<Draft>(kPromptFields, list);
  append_fields<Draft>(kAnswerFields, list);
  append_fields(text_fields(), list);
  append_fields(sampling_fields(), list);
  return with_client_fields(std::move(list));
}

FieldList prompt_fields() {
  FieldList list = list_fields(common_fields());
  append_fields<Draft>(kPromptFields, list);
  return with_client_fields(std::move(list));
}

}  // namespace paceline::responses
