#include "protocol/ollama_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "chat/message_json.h"
#include "protocol/chat_tools.h"

namespace paceline {
namespace {

constexpr FieldType kNoImages = {.kind = FieldKind::array,
                                 .max = 0,
                                 .is_part_of_api = true,
                                 .expected = "an empty array: the model reads text only"};
constexpr FieldType kDurationKinds[] = {kAnyNumber, kAnyText};
constexpr FieldType kDuration =
    one_of_type(kDurationKinds, "seconds, or a duration such as \"5m\" or \"1h30m\"");
constexpr std::string_view kThinkLevels[] = {"low", "medium", "high", "max"};
constexpr FieldType kThinkKinds[] = {kBoolean, word_type(kThinkLevels)};
constexpr FieldType kThink = one_of_type(kThinkKinds, "true, false, low, medium, high or max");
constexpr FieldType kEmbedInputKinds[] = {kAnyText, array_type(kAnyText, 0, kMaxInputs)};
constexpr FieldType kEmbedInput = one_of_type(kEmbedInputKinds, "a string or an array of strings");
constexpr std::string_view kOllamaFormatWords[] = {"", "json"};
constexpr FieldType kOllamaFormatKinds[] = {kAnyObject, word_type(kOllamaFormatWords)};
constexpr FieldType kOllamaFormat = one_of_type(kOllamaFormatKinds, "\"json\", or a JSON Schema");
constexpr int64_t kNoPredictLimit = -2;  // and -1
constexpr auto kAnySeed = static_cast<uint64_t>(int64_t{-1});

constexpr std::string_view kAtStart = "It is chosen when the server starts.";
constexpr std::string_view kOfMirostat = "Of mirostat.";
constexpr std::string_view kKnownByPlace = "Calls are known by their place.";

struct OllamaMessage {
  std::string role;
  std::string content;
  std::string thinking;
  std::string tool_name;
  std::string tool_call_id;
  Json::Array tool_calls;
};

struct OllamaCall {
  std::string id;
  std::string name;
  Json arguments = Json(Json::Object());
};

constexpr FieldDef<OllamaCall> kOllamaFunctionFields[] = {
    {.name = "name",
     .type = kAnyText,
     .is_required = true,
     .help = "The function.",
     .read = [](const FieldValue& v, OllamaCall& t) { t.name = v.text(); }},
    {.name = "arguments",
     .type = kAnyObject,
     .help = "Its arguments.",
     .read = [](const FieldValue& v, OllamaCall& t) { t.arguments = v.json(); }},
    {.name = "index", .type = kAnyNumber, .use = FieldUse::accepted, .help = kKnownByPlace},
    {.name = "description", .type = kAnyText, .use = FieldUse::accepted, .help = "The tool's."},
};

FieldList ollama_function_fields() { return list_fields<OllamaCall>(kOllamaFunctionFields); }

void read_call_function(const FieldValue& value, OllamaCall& call) {
  RequestReader reader(value);
  reader.read<OllamaCall>(kOllamaFunctionFields, call);
  reader.finish();
}

constexpr FieldDef<OllamaCall> kOllamaCallFields[] = {
    {.name = "id",
     .type = kAnyText,
     .help = "What the tool's message refers to.",
     .read = [](const FieldValue& v, OllamaCall& t) { t.id = v.text(); }},
    {.name = "type", .type = kOnlyFunction, .help = "Only function."},
    {.name = "index", .type = kAnyNumber, .use = FieldUse::accepted, .help = kKnownByPlace},
    {.name = "function",
     .type = object_type(ollama_function_fields),
     .is_required = true,
     .help = "Name and arguments.",
     .read = read_call_function},
};

FieldList ollama_call_fields() { return list_fields<OllamaCall>(kOllamaCallFields); }
constexpr FieldType kOllamaCall = object_type(ollama_call_fields);

void read_ollama_call(const FieldValue& value, OllamaMessage& message) {
  OllamaCall call;
  RequestReader reader(value);
  reader.read<OllamaCall>(kOllamaCallFields, call);
  reader.finish();
  Json::Object function{{"name", Json(call.name)}, {"arguments", std::move(call.arguments)}};
  message.tool_calls.push_back(Json(Json::Object{{"id", Json(call.id)},
                                                 {"type", Json(std::string("function"))},
                                                 {"function", Json(std::move(function))}}));
}

constexpr std::string_view kOllamaRoles[] = {"system", "user", "assistant", "tool"};

constexpr FieldDef<OllamaMessage> kOllamaMessageFields[] = {
    {.name = "role",
     .type = word_type(kOllamaRoles),
     .is_required = true,
     .help = "Who speaks.",
     .read = [](const FieldValue& v, OllamaMessage& t) { t.role = v.text(); }},
    {.name = "content",
     .type = kAnyText,
     .by_default = std::string_view(""),
     .help = "The text.",
     .read = [](const FieldValue& v, OllamaMessage& t) { t.content = v.text(); }},
    {.name = "thinking",
     .type = kAnyText,
     .help = "What the assistant thought, for templates that show it.",
     .read = [](const FieldValue& v, OllamaMessage& t) { t.thinking = v.text(); }},
    {.name = "images", .type = kNoImages, .help = "Only an empty array."},
    {.name = "tool_calls",
     .type = array_type(kOllamaCall, 0, kMaxTools),
     .help = "The calls that the assistant made.",
     .read =
         [](const FieldValue& v, OllamaMessage& t) {
           for (const FieldValue& item : v.items()) read_ollama_call(item, t);
         }},
    {.name = "tool_name",
     .type = kAnyText,
     .help = "The function whose result this is.",
     .read = [](const FieldValue& v, OllamaMessage& t) { t.tool_name = v.text(); }},
    {.name = "tool_call_id",
     .type = kAnyText,
     .help = "The call whose result this is; without it the first one without a result, of the "
             "function tool_name if that is there.",
     .read = [](const FieldValue& v, OllamaMessage& t) { t.tool_call_id = v.text(); }},
};

FieldList ollama_message_fields() { return list_fields<OllamaMessage>(kOllamaMessageFields); }
constexpr FieldType kOllamaMessage = object_type(ollama_message_fields);
constexpr FieldType kOllamaMessages = array_type(kOllamaMessage, 0, kNoMaximum);

// Ollama's clients send calls and results without ids, which templates write. A made id has nine
// letters and digits, as Mistral's templates want them.
class CallIds {
 public:
  void name_calls(Json::Array& calls) {
    for (Json& call : calls) {
      const Json function = *call.find("function");
      std::string id = *call.find("id")->string();
      if (id.empty()) id = fmt::format("call{:05}", next_++);
      call = with_member(call, "id", Json(id));
      if (open_.size() == kMaxTools) open_.erase(open_.begin());
      open_.emplace_back(*function.find("name")->string(), std::move(id));
    }
  }

  void answer_call(OllamaMessage& result) {
    const auto is_meant = [&](const auto& call) {
      if (!result.tool_call_id.empty()) return call.second == result.tool_call_id;
      return result.tool_name.empty() || call.first == result.tool_name;
    };
    const auto call = std::find_if(open_.begin(), open_.end(), is_meant);
    if (call == open_.end()) return;
    result.tool_call_id = call->second;
    open_.erase(call);
  }

 private:
  int64_t next_ = 0;
  // Name and id of the latest calls without a result; more of them would make results slow to find.
  std::vector<std::pair<std::string, std::string>> open_;
};

ChatMessage as_template_input(OllamaMessage message) {
  if (message.thinking.empty() && message.tool_name.empty() && message.tool_call_id.empty() &&
      message.tool_calls.empty()) {
    return {.role = std::move(message.role), .content = std::move(message.content)};
  }
  ChatMessage input;
  JsonWriter writer(input.json);
  writer.begin_object().member("role", message.role).member("content", message.content);
  if (!message.tool_name.empty()) writer.member("name", message.tool_name);
  if (!message.tool_call_id.empty()) writer.member("tool_call_id", message.tool_call_id);
  if (!message.thinking.empty()) writer.member("reasoning_content", message.thinking);
  if (!message.tool_calls.empty()) {
    writer.key("tool_calls").tree(Json(std::move(message.tool_calls)));
  }
  writer.end_object();
  return input;
}

std::vector<ChatMessage> read_ollama_messages(const FieldValue& value) {
  std::vector<ChatMessage> messages;
  CallIds ids;
  for (const FieldValue& item : value.items()) {
    OllamaMessage message;
    RequestReader reader(item);
    reader.read<OllamaMessage>(kOllamaMessageFields, message);
    reader.finish();
    ids.name_calls(message.tool_calls);
    if (message.role == "tool") ids.answer_call(message);
    messages.push_back(as_template_input(std::move(message)));
  }
  return messages;
}

// Fields as read, before the request is made of them.
struct OllamaDraft {
  CommonFields common;
  GenerateOptions options;
  GenerationFields generation = {.timings = true, .streaming = {.stream = true}};
  std::optional<std::string> effort;
  bool has_logprobs = false;
  int32_t top_logprobs = 0;
  ChatInput input;
  TurnRequest turn;
  // Of /api/generate.
  std::string prompt;
  std::string system;
  std::string suffix;
  bool is_raw = false;
  // Of /api/embed and /api/embeddings.
  EmbeddingRequest embedding = {.truncates = true};
};

void read_num_predict(const FieldValue& value, OllamaDraft& draft) {
  const int64_t count = value.integer();
  draft.options.max_tokens = count <= 0 ? static_cast<int64_t>(kMaxOutputTokens) : count;
}

constexpr FieldDef<OllamaDraft> kOllamaOptionFields[] = {
    {.name = "num_predict",
     .type = integer_type(kNoPredictLimit, kMaxOutputTokens),
     .by_default = int64_t{-1},
     .help = "Stop after this many tokens; 0, -1 or -2: when the context is full.",
     .read = read_num_predict},
    {.name = "num_ctx",
     .type = integer_type(0, kMaxOutputTokens),
     .use = FieldUse::accepted,
     .help = "The server's context is the same for all; a prompt that is too long is refused."},
    {.name = "repeat_last_n",
     .type = integer_type(-1, std::numeric_limits<int32_t>::max()),
     .help = "With a penalty only -1: penalties see the whole text.",
     .read = [](const FieldValue& v,
                OllamaDraft& t) { t.generation.penalised_tokens = v.integer(); }},
    {.name = "mirostat", .type = kOnlyZero, .by_default = 0.0, .help = "Only 0 (off)."},
    {.name = "mirostat_tau", .type = kAnyNumber, .use = FieldUse::accepted, .help = kOfMirostat},
    {.name = "mirostat_eta", .type = kAnyNumber, .use = FieldUse::accepted, .help = kOfMirostat},
    {.name = "tfs_z", .type = kOnlyOne, .by_default = 1.0, .help = "Only 1 (off)."},
    {.name = "penalize_newline",
     .type = kBoolean,
     .use = FieldUse::accepted,
     .help = "Penalties treat all tokens alike."},
    {.name = "num_keep",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "No token is ever discarded: the text ends when the context is full."},
    {.name = "draft_num_predict",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "Drafts never change an answer."},
    {.name = "num_batch", .type = kAnyNumber, .use = FieldUse::accepted, .help = kAtStart},
    {.name = "num_gpu", .type = kAnyNumber, .use = FieldUse::accepted, .help = kAtStart},
    {.name = "main_gpu", .type = kAnyNumber, .use = FieldUse::accepted, .help = kAtStart},
    {.name = "num_thread", .type = kAnyNumber, .use = FieldUse::accepted, .help = kAtStart},
    {.name = "numa", .type = kBoolean, .use = FieldUse::accepted, .help = kAtStart},
    {.name = "low_vram", .type = kBoolean, .use = FieldUse::accepted, .help = kAtStart},
    {.name = "f16_kv", .type = kBoolean, .use = FieldUse::accepted, .help = kAtStart},
    {.name = "logits_all", .type = kBoolean, .use = FieldUse::accepted, .help = kAtStart},
    {.name = "vocab_only", .type = kOnlyFalse, .by_default = false, .help = "Only false."},
    {.name = "embedding_only", .type = kOnlyFalse, .by_default = false, .help = "Only false."},
    {.name = "use_mmap", .type = kBoolean, .use = FieldUse::accepted, .help = kAtStart},
    {.name = "use_mlock", .type = kBoolean, .use = FieldUse::accepted, .help = kAtStart},
};

FieldList ollama_option_fields() {
  FieldList list = list_fields<OllamaDraft>(kOllamaOptionFields);
  append_fields(sampling_fields(), list);
  append_fields(text_fields(), list);
  return list;
}

void read_ollama_options(const FieldValue& value, OllamaDraft& draft) {
  RequestReader reader(value);
  reader.read<OllamaDraft>(kOllamaOptionFields, draft);
  reader.read(sampling_fields(), draft.options);
  reader.read(text_fields(), draft.options);
  reader.finish();
  if (draft.options.seed == kAnySeed) draft.options.seed.reset();
}

// The seconds of Go's notation of a duration; nothing for another text.
std::optional<double> seconds_of_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr Unit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                             {"s", 1},     {"m", 60},    {"h", 3600}};
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  while (!text.empty() && text != "0") {
    double count = 0;
    if (text.find_first_of("0123456789.") != 0) return std::nullopt;  // "inf", "nan", a sign
    const auto [end, error] =
        std::from_chars(text.begin(), text.end(), count, std::chars_format::fixed);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.begin()));
    const std::string_view name = text.substr(0, text.find_first_of("0123456789."));
    const auto* const unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                          [&](const Unit& one) { return one.name == name; });
    if (unit == std::end(kUnits)) return std::nullopt;
    seconds += count * unit->seconds;
    text.remove_prefix(name.size());
  }
  return is_negative ? -seconds : seconds;
}

void read_keep_alive(const FieldValue& value, OllamaDraft& draft) {
  draft.common.keep_alive_seconds =
      value.json().is_string() ? seconds_of_duration(value.text()) : value.json().number();
  if (!draft.common.keep_alive_seconds) value.refuse(kDuration.expected);
}

void read_format(const FieldValue& value, OllamaDraft& draft) {
  using Kind = ConstraintSpec::Kind;
  AskedConstraint& asked = draft.generation.constraint;
  if (value.json().is_object()) {
    asked.spec = {.kind = Kind::json_schema, .text = to_json(value.json()), .best_effort = true};
  } else if (!value.text().empty()) {
    asked.spec = {.kind = Kind::json_object};
  }
  if (asked.spec) asked.field = value.path();
}

void read_think(const FieldValue& value, OllamaDraft& draft) {
  if (value.json().is_string()) {
    draft.turn.reasoning_effort = value.text();
  } else {
    draft.turn.reasoning_effort = value.boolean() ? "medium" : "none";
  }
}

// Of every request.
constexpr FieldDef<OllamaDraft> kOllamaModelFields[] = {
    {.name = "options",
     .type = object_type(ollama_option_fields),
     .help = "The options of the draw and of the text's end; others say how a server runs.",
     .read = read_ollama_options},
    {.name = "keep_alive",
     .type = kDuration,
     .help = "How long the model stays loaded after the request, in seconds or as \"5m\"; 0: not "
             "at all; below 0: for ever.",
     .read = read_keep_alive},
};

constexpr FieldDef<OllamaDraft> kOllamaAnswerFields[] = {
    {.name = "format",
     .type = kOllamaFormat,
     .by_default = std::string_view(""),
     .help = "What the answer must be: \"json\" for any JSON object, or a JSON Schema.",
     .read = read_format},
    {.name = "stream",
     .type = kBoolean,
     .by_default = true,
     .help = "Answer in lines of JSON as the text comes.",
     .read = [](const FieldValue& v,
                OllamaDraft& t) { t.generation.streaming.stream = v.boolean(); }},
    {.name = "think",
     .type = kThink,
     .help = "Whether and how much the model reasons, where its template has a switch.",
     .read = read_think},
    {.name = "logprobs",
     .type = kBoolean,
     .by_default = false,
     .help = "Report each token's log-probability.",
     .read = [](const FieldValue& v, OllamaDraft& t) { t.has_logprobs = v.boolean(); }},
    {.name = "top_logprobs",
     .type = kNumTopLogprobs,
     .by_default = int64_t{0},
     .help = "Alternatives reported beside each token, with logprobs.",
     .read = [](const FieldValue& v, OllamaDraft& t) { t.top_logprobs = v.small_integer(); }},
    {.name = "truncate",
     .type = kBoolean,
     .use = FieldUse::accepted,
     .help = "Nothing is cut: a prompt that is too long for the context is refused."},
    {.name = "shift",
     .type = kBoolean,
     .use = FieldUse::accepted,
     .help = "Nothing is cut: the text ends when the context is full."},
};

constexpr FieldDef<OllamaDraft> kOllamaChatFields[] = {
    {.name = "messages",
     .type = kOllamaMessages,
     .help = "The conversation so far; without messages the model is loaded.",
     .read = [](const FieldValue& v,
                OllamaDraft& t) { t.input.messages = read_ollama_messages(v); }},
    {.name = "tools",
     .type = kTools,
     .help = "Functions that the model may call, as the template shows them to it.",
     .read = [](const FieldValue& v,
                OllamaDraft& t) { t.input.tools_json = read_tools(v, t.turn); }},
};

constexpr FieldDef<OllamaDraft> kOllamaGenerateFields[] = {
    {.name = "prompt",
     .type = kAnyText,
     .by_default = std::string_view(""),
     .help = "What the user says, or with raw or suffix the text itself; without it the model is "
             "loaded.",
     .read = [](const FieldValue& v, OllamaDraft& t) { t.prompt = v.text(); }},
    {.name = "suffix",
     .type = kAnyText,
     .by_default = std::string_view(""),
     .help = "The text after the gap, for models with fill-in-the-middle tokens.",
     .read = [](const FieldValue& v, OllamaDraft& t) { t.suffix = v.text(); }},
    {.name = "system",
     .type = kAnyText,
     .by_default = std::string_view(""),
     .help = "The system message in front of the prompt.",
     .read = [](const FieldValue& v, OllamaDraft& t) { t.system = v.text(); }},
    {.name = "template",
     .type = kNoText,
     .help = "Only an empty string: templates come with the model or by --chat-template."},
    {.name = "context",
     .type = array_type(kTokenId, 0, kMaxListedTokens),
     .help = "The context of an earlier answer, which the conversation goes on from.",
     .read = [](const FieldValue& v, OllamaDraft& t) { t.turn.context = v.token_ids(); }},
    {.name = "raw",
     .type = kBoolean,
     .by_default = false,
     .help = "Continue the prompt as it is, without the chat template.",
     .read = [](const FieldValue& v, OllamaDraft& t) { t.is_raw = v.boolean(); }},
    {.name = "images", .type = kNoImages, .help = "Only an empty array."},
};

// No text stands for no input.
void read_embed_input(const FieldValue& value, OllamaDraft& draft) {
  const bool is_nothing = value.json().is_string() ? value.text().empty() : value.items().empty();
  if (!is_nothing) draft.embedding.input = read_prompts(value);
}

void read_dimensions(const FieldValue& value, OllamaDraft& draft) {
  if (value.integer() > 0) draft.embedding.dimensions = value.integer();
}

constexpr FieldDef<OllamaDraft> kOllamaEmbedFields[] = {
    {.name = "input",
     .type = kEmbedInput,
     .help = "A string, or an array of strings (up to 2048); without it the model is loaded.",
     .read = read_embed_input},
    {.name = "truncate",
     .type = kBoolean,
     .by_default = true,
     .help = "Cut an input that is too long for the context; false: refuse it.",
     .read = [](const FieldValue& v, OllamaDraft& t) { t.embedding.truncates = v.boolean(); }},
    {.name = "dimensions",
     .type = integer_type(0, kMaxDimensions),
     .help = "Elements of an embedding, of models trained for several sizes; 0: the model's.",
     .read = read_dimensions},
};

constexpr FieldDef<OllamaDraft> kOllamaEmbeddingsFields[] = {
    {.name = "prompt",
     .type = kAnyText,
     .by_default = std::string_view(""),
     .help = "The text; without it the model is loaded.",
     .read = read_embed_input},
};

struct OllamaShowRequest {
  std::optional<std::string> model;
};

constexpr FieldDef<OllamaShowRequest> kOllamaShowFields[] = {
    {.name = "model",
     .type = kAnyText,
     .help = "The model's name.",
     .read = [](const FieldValue& v, OllamaShowRequest& t) { t.model = v.text(); }},
    {.name = "name",
     .type = kAnyText,
     .alias_of = "model",
     .help = "The older name of it.",
     .read =
         [](const FieldValue& v, OllamaShowRequest& t) {
           if (!v.text().empty()) t.model = v.text();
         }},
    {.name = "verbose",
     .type = kBoolean,
     .use = FieldUse::accepted,
     .help = "There is no more to show."},
    {.name = "system", .type = kNoText, .help = "Only an empty string."},
    {.name = "template", .type = kNoText, .help = "Only an empty string."},
    {.name = "options",
     .type = kAnyObject,
     .use = FieldUse::accepted,
     .help = "Of requests that compute."},
};

// A name without a tag is that of the tag latest.
void drop_latest_tag(std::optional<std::string>& model) {
  constexpr std::string_view kLatest = ":latest";
  if (model && model->ends_with(kLatest)) model->resize(model->size() - kLatest.size());
}

template <class... Tables>
OllamaDraft read_draft(const Json& body, const RequestTerms& terms, const Tables&... tables) {
  OllamaDraft draft;
  RequestReader reader(body, terms);
  reader.read(common_fields(), draft.common);
  reader.read<OllamaDraft>(kOllamaModelFields, draft);
  (reader.read<OllamaDraft>(tables, draft), ...);
  reader.finish();
  return draft;
}

template <class... Tables>
FieldList ollama_fields(const Tables&... tables) {
  FieldList list = list_fields(common_fields());
  (append_fields<OllamaDraft>(tables, list), ...);
  append_fields<OllamaDraft>(kOllamaModelFields, list);
  return list;
}

OllamaRequest request_of(OllamaDraft& draft, GenerationRequest request) {
  OllamaRequest asked{.request = std::move(request)};
  asked.model = draft.common.model.value_or("");
  drop_latest_tag(draft.common.model);
  check_penalty_fields(draft.generation, draft.options);
  draft.options.constraint = draft.generation.constraint.spec;
  draft.options.constraint_name = draft.generation.constraint.field;
  std::visit(
      [&](auto& one) {
        one.common = std::move(draft.common);
        one.options = std::move(draft.options);
        one.generation = std::move(draft.generation);
      },
      asked.request);
  return asked;
}

ChatRequest chat_of(OllamaDraft& draft) {
  ChatRequest chat{.input = std::move(draft.input), .turn = std::move(draft.turn)};
  chat.logprobs = draft.has_logprobs;
  chat.top_logprobs = draft.has_logprobs ? draft.top_logprobs : 0;
  chat.turn.make_call_id = [] { return random_id("call_"); };
  return chat;
}

CompletionRequest completion_of(OllamaDraft& draft) {
  if (!draft.options.max_tokens) draft.options.max_tokens = static_cast<int64_t>(kMaxOutputTokens);
  CompletionRequest completion{.suffix = std::move(draft.suffix)};
  completion.prompt.prompts.emplace_back(std::move(draft.prompt));
  if (draft.has_logprobs) completion.logprobs = draft.top_logprobs;
  return completion;
}

OllamaEmbedRequest embed_request_of(OllamaDraft draft) {
  OllamaEmbedRequest asked{.request = std::move(draft.embedding)};
  asked.is_load = asked.request.input.prompts.empty();
  asked.model = draft.common.model.value_or("");
  drop_latest_tag(draft.common.model);
  asked.request.common = std::move(draft.common);
  return asked;
}

}  // namespace

OllamaRequest parse_ollama_chat(const Json& body, const RequestTerms& terms) {
  OllamaDraft draft = read_draft(body, terms, kOllamaAnswerFields, kOllamaChatFields);
  const bool is_load = draft.input.messages.empty();
  OllamaRequest asked = request_of(draft, chat_of(draft));
  asked.is_load = is_load;
  return asked;
}

OllamaRequest parse_ollama_generate(const Json& body, const RequestTerms& terms) {
  OllamaDraft draft = read_draft(body, terms, kOllamaAnswerFields, kOllamaGenerateFields);
  if (draft.is_raw && (!draft.system.empty() || !draft.turn.context.empty())) {
    throw invalid_field("raw", "not allowed with system or context, expected the whole prompt");
  }
  const bool is_load = draft.prompt.empty() && draft.suffix.empty();
  const bool is_text = draft.is_raw || !draft.suffix.empty();
  if (!is_text) {
    draft.generation.return_token_ids = true;
    if (!draft.system.empty()) draft.input.messages.push_back({"system", std::move(draft.system)});
    draft.input.messages.push_back({"user", std::move(draft.prompt)});
  }
  OllamaRequest asked =
      is_text ? request_of(draft, completion_of(draft)) : request_of(draft, chat_of(draft));
  asked.is_load = is_load;
  asked.returns_context = !is_text;
  return asked;
}

OllamaEmbedRequest parse_ollama_embed(const Json& body, const RequestTerms& terms) {
  return embed_request_of(read_draft(body, terms, kOllamaEmbedFields));
}

OllamaEmbedRequest parse_ollama_embeddings(const Json& body, const RequestTerms& terms) {
  return embed_request_of(read_draft(body, terms, kOllamaEmbeddingsFields));
}

std::optional<std::string> parse_ollama_show(const Json& body, const RequestTerms& terms) {
  OllamaShowRequest request;
  RequestReader reader(body, terms);
  reader.read<OllamaShowRequest>(kOllamaShowFields, request);
  reader.finish();
  drop_latest_tag(request.model);
  return request.model;
}

FieldList ollama_show_fields() { return list_fields<OllamaShowRequest>(kOllamaShowFields); }
FieldList ollama_chat_fields() { return ollama_fields(kOllamaChatFields, kOllamaAnswerFields); }
FieldList ollama_generate_fields() {
  return ollama_fields(kOllamaGenerateFields, kOllamaAnswerFields);
}
FieldList ollama_embed_fields() { return ollama_fields(kOllamaEmbedFields); }
FieldList ollama_embeddings_fields() { return ollama_fields(kOllamaEmbeddingsFields); }

}  // namespace paceline
