#include "protocol/ollama_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/json_writer.h"
#include "base/request_error.h"
#include "protocol/chat_messages.h"
#include "protocol/chat_tools.h"

namespace paceline {
namespace {

constexpr FieldType kNoImages = {.kind = FieldKind::array,
                                 .max = 0,
                                 .is_part_of_api = true,
                                 .expected = "an empty array: the model reads text only"};
constexpr FieldType kDuration =
    one_of_type<kAnyNumber, kAnyText>("seconds, or a duration such as \"5m\" or \"1h30m\"");
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

constexpr FieldDef<HistoryCall> kOllamaFunctionFields[] = {
    required("name", kAnyText, "The function.", store<&HistoryCall::name>),
    field("arguments", kAnyObject, "Its arguments.", store<&HistoryCall::arguments>),
    ignored("index", kAnyNumber, kKnownByPlace),
    ignored("description", kAnyText, "The tool's."),
};

constexpr FieldDef<HistoryCall> kOllamaCallFields[] = {
    field("id", kAnyText, "What the tool's message refers to.", store<&HistoryCall::id>),
    field("type", kOnlyFunction, "Only function."),
    ignored("index", kAnyNumber, kKnownByPlace),
    required(object<kOllamaFunctionFields>("function", "Name and arguments.")),
};

constexpr FieldType kOllamaCall = object_type(fields_of<kOllamaCallFields>);
constexpr std::string_view kOllamaRoles[] = {"system", "user", "assistant", "tool"};

constexpr FieldDef<HistoryMessage> kOllamaMessageFields[] = {
    required("role", word_type(kOllamaRoles), "Who speaks.", store<&HistoryMessage::role>),
    field("content", kAnyText, "The text.", {.by_default = ""}, store<&HistoryMessage::content>),
    field("thinking", kAnyText, "What the assistant thought, for templates that show it.",
          store<&HistoryMessage::reasoning_content>),
    field("images", kNoImages, "Only an empty array."),
    field("tool_calls", array_type(kOllamaCall, 0, kMaxTools), "The calls that the assistant made.",
          [](const FieldValue& v, HistoryMessage& t) {
            t.tool_calls = read_objects<kOllamaCallFields>(v);
          }),
    field("tool_name", kAnyText, "The function whose result this is.",
          store<&HistoryMessage::name>),
    field("tool_call_id", kAnyText,
          "The call whose result this is; without it the first one without a result, of the "
          "function tool_name if that is there.",
          store<&HistoryMessage::tool_call_id>),
};

constexpr FieldType kOllamaMessage = object_type(fields_of<kOllamaMessageFields>);
constexpr FieldType kOllamaMessages = array_type(kOllamaMessage, 0, kNoMaximum);

// Ollama's clients send calls and results without ids, which templates write. A made id has nine
// letters and digits, as Mistral's templates want them.
class CallIds {
 public:
  void name_calls(std::vector<HistoryCall>& calls) {
    for (HistoryCall& call : calls) {
      if (call.id.empty()) call.id = fmt::format("call{:05}", next_++);
      if (open_.size() == kMaxTools) open_.erase(open_.begin());
      open_.emplace_back(call.name, call.id);
    }
  }

  void answer_call(HistoryMessage& result) {
    const auto is_meant = [&](const auto& call) {
      if (result.tool_call_id) return call.second == *result.tool_call_id;
      return !result.name || call.first == *result.name;
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

std::vector<ChatMessage> read_ollama_messages(const FieldValue& value) {
  std::vector<ChatMessage> messages;
  CallIds ids;
  for (const FieldValue& item : value.items()) {
    auto message = read_object<kOllamaMessageFields>(item);
    for (auto* const text : {&message.name, &message.tool_call_id, &message.reasoning_content}) {
      if (*text && (*text)->empty()) text->reset();
    }
    ids.name_calls(message.tool_calls);
    if (message.role == "tool") ids.answer_call(message);
    messages.push_back(template_message(std::move(message)));
  }
  return messages;
}

// Fields as read, before the request is made of them.
struct OllamaDraft : ChatRequest {
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
    field("num_predict", integer_type(kNoPredictLimit, kMaxOutputTokens),
          "Stop after this many tokens; 0, -1 or -2: when the context is full.", {.by_default = -1},
          read_num_predict),
    ignored("num_ctx", integer_type(0, kMaxOutputTokens),
            "The server's context is the same for all; a prompt that is too long is refused."),
    field("repeat_last_n", integer_type(-1, std::numeric_limits<int32_t>::max()),
          "With a penalty only -1: penalties see the whole text.",
          store<OllamaDraft, &OllamaDraft::generation, &GenerationFields::penalised_tokens>),
    field("mirostat", kOnlyZero, "Only 0 (off).", {.by_default = 0.0}),
    ignored("mirostat_tau", kAnyNumber, kOfMirostat),
    ignored("mirostat_eta", kAnyNumber, kOfMirostat),
    field("tfs_z", kOnlyOne, "Only 1 (off).", {.by_default = 1.0}),
    ignored("penalize_newline", kBoolean, "Penalties treat all tokens alike."),
    ignored("num_keep", kAnyNumber,
            "No token is ever discarded: the text ends when the context is full."),
    ignored("draft_num_predict", kAnyNumber, "Drafts never change an answer."),
    ignored("num_batch", kAnyNumber, kAtStart),
    ignored("num_gpu", kAnyNumber, kAtStart),
    ignored("main_gpu", kAnyNumber, kAtStart),
    ignored("num_thread", kAnyNumber, kAtStart),
    ignored("numa", kBoolean, kAtStart),
    ignored("low_vram", kBoolean, kAtStart),
    ignored("f16_kv", kBoolean, kAtStart),
    ignored("logits_all", kBoolean, kAtStart),
    field("vocab_only", kOnlyFalse, "Only false.", kOff),
    field("embedding_only", kOnlyFalse, "Only false.", kOff),
    ignored("use_mmap", kBoolean, kAtStart),
    ignored("use_mlock", kBoolean, kAtStart),
};

FieldList ollama_option_fields() {
  FieldList list = fields_of<kOllamaOptionFields>();
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
    field("options", object_type(ollama_option_fields),
          "The options of the draw and of the text's end; others say how a server runs.",
          read_ollama_options),
    field("keep_alive", kDuration,
          "How long the model stays loaded after the request, in seconds or as \"5m\"; 0: not at "
          "all; below 0: for ever.",
          read_keep_alive),
};

constexpr FieldDef<OllamaDraft> kOllamaAnswerFields[] = {
    field("format", kOllamaFormat,
          "What the answer must be: \"json\" for any JSON object, or a JSON Schema.",
          {.by_default = ""}, read_format),
    field("stream", kBoolean, "Answer in lines of JSON as the text comes.", kOn,
          [](const FieldValue& v, OllamaDraft& t) { t.generation.streaming.stream = v.boolean(); }),
    field("think", kThink,
          "Whether and how much the model reasons, where its template has a switch.", read_think),
    field("logprobs", kBoolean, "Report each token's log-probability.", kOff,
          store<OllamaDraft, &OllamaDraft::logprobs>),
    field("top_logprobs", kNumTopLogprobs,
          "Alternatives reported beside each token, with logprobs.", {.by_default = 0},
          store<OllamaDraft, &OllamaDraft::top_logprobs>),
    ignored("truncate", kBoolean,
            "Nothing is cut: a prompt that is too long for the context is refused."),
    ignored("shift", kBoolean, "Nothing is cut: the text ends when the context is full."),
};

constexpr FieldDef<OllamaDraft> kOllamaChatFields[] = {
    field("messages", kOllamaMessages,
          "The conversation so far; without messages the model is loaded.",
          [](const FieldValue& v, OllamaDraft& t) { t.input.messages = read_ollama_messages(v); }),
    field("tools", kTools, "Functions that the model may call, as the template shows them to it.",
          [](const FieldValue& v, OllamaDraft& t) { t.input.tools_json = read_tools(v, t.turn); }),
};

constexpr FieldDef<OllamaDraft> kOllamaGenerateFields[] = {
    field("prompt", kAnyText,
          "What the user says, or with raw or suffix the text itself; without it the model is "
          "loaded.",
          {.by_default = ""}, store<&OllamaDraft::prompt>),
    field("suffix", kAnyText, "The text after the gap, for models with fill-in-the-middle tokens.",
          {.by_default = ""}, store<&OllamaDraft::suffix>),
    field("system", kAnyText, "The system message in front of the prompt.", {.by_default = ""},
          store<&OllamaDraft::system>),
    field("template", kNoText,
          "Only an empty string: templates come with the model or by --chat-template."),
    field("context", array_type(kTokenId, 0, kMaxListedTokens),
          "The context of an earlier answer, which the conversation goes on from.",
          store<OllamaDraft, &OllamaDraft::turn, &TurnRequest::context>),
    field("raw", kBoolean, "Continue the prompt as it is, without the chat template.", kOff,
          store<&OllamaDraft::is_raw>),
    field("images", kNoImages, "Only an empty array."),
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
    field("input", kEmbedInput,
          "A string, or an array of strings (up to 2048); without it the model is loaded.",
          read_embed_input),
    field("truncate", kBoolean, "Cut an input that is too long for the context; false: refuse it.",
          kOn, store<&OllamaDraft::embedding, &EmbeddingRequest::truncates>),
    field("dimensions", integer_type(0, kMaxDimensions),
          "Elements of an embedding, of models trained for several sizes; 0: the model's.",
          read_dimensions),
};

constexpr FieldDef<OllamaDraft> kOllamaEmbeddingsFields[] = {
    field("prompt", kAnyText, "The text; without it the model is loaded.", {.by_default = ""},
          read_embed_input),
};

struct OllamaShowRequest {
  std::optional<std::string> model;
};

constexpr FieldDef<OllamaShowRequest> kOllamaShowFields[] = {
    field("model", kAnyText, "The model's name.", store<&OllamaShowRequest::model>),
    field("name", kAnyText, "The older name of it.", {.alias_of = "model"},
          [](const FieldValue& v, OllamaShowRequest& t) {
            if (!v.text().empty()) t.model = v.text();
          }),
    ignored("verbose", kBoolean, "There is no more to show."),
    field("system", kNoText, "Only an empty string."),
    field("template", kNoText, "Only an empty string."),
    ignored("options", kAnyObject, "Of requests that compute."),
};

// A name without a tag is that of the tag latest.
void drop_latest_tag(std::optional<std::string>& model) {
  constexpr std::string_view kLatest = ":latest";
  if (model && model->ends_with(kLatest)) model->resize(model->size() - kLatest.size());
}

template <class... Tables>
OllamaDraft read_draft(const Json& body, const RequestTerms& terms, const Tables&... tables) {
  OllamaDraft draft;
  draft.generation.timings = true;
  draft.generation.streaming.stream = true;
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

GenerationRequest completion_of(OllamaDraft& draft) {
  if (!draft.options.max_tokens) draft.options.max_tokens = static_cast<int64_t>(kMaxOutputTokens);
  CompletionRequest completion{.common = std::move(draft.common),
                               .options = std::move(draft.options),
                               .generation = std::move(draft.generation),
                               .suffix = std::move(draft.suffix)};
  completion.prompt.prompts.emplace_back(std::move(draft.prompt));
  if (draft.logprobs) completion.logprobs = draft.top_logprobs;
  return completion;
}

GenerationRequest chat_of(OllamaDraft& draft) {
  if (!draft.logprobs) draft.top_logprobs = 0;
  draft.turn.make_call_id = [] { return random_id("call_"); };
  return std::move(draft);
}

OllamaRequest request_of(OllamaDraft& draft, GenerationRequest (*make_request)(OllamaDraft&)) {
  OllamaRequest asked{.model = draft.common.model.value_or("")};
  drop_latest_tag(draft.common.model);
  check_penalty_fields(draft.generation, draft.options);
  draft.options.constraint = draft.generation.constraint.spec;
  draft.options.constraint_name = draft.generation.constraint.field;
  asked.request = make_request(draft);
  return asked;
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
  OllamaRequest asked = request_of(draft, chat_of);
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
  OllamaRequest asked = request_of(draft, is_text ? completion_of : chat_of);
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
  auto request = read_body<kOllamaShowFields>(body, terms);
  drop_latest_tag(request.model);
  return request.model;
}

FieldList ollama_show_fields() { return fields_of<kOllamaShowFields>(); }
FieldList ollama_chat_fields() { return ollama_fields(kOllamaChatFields, kOllamaAnswerFields); }
FieldList ollama_generate_fields() {
  return ollama_fields(kOllamaGenerateFields, kOllamaAnswerFields);
}
FieldList ollama_embed_fields() { return ollama_fields(kOllamaEmbedFields); }
FieldList ollama_embeddings_fields() { return ollama_fields(kOllamaEmbeddingsFields); }

}  // namespace paceline
