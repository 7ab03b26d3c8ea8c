// POST /api/chat, /api/generate, /api/embed and /api/embeddings, Ollama's: streams are lines of
// JSON, of which the last one has the end, the counts and the times.

#include <cmath>

#include "protocol/dialect.h"
#include "protocol/logprobs_json.h"
#include "protocol/ollama_request.h"

namespace paceline {
namespace {

enum class OllamaShape : uint8_t { chat, generate };

// Arguments that the answer's end has cut are no object: such a call isn't written.
bool is_whole_call(const ToolCall& call) { return parse_object(call.arguments).has_value(); }

void write_ollama_calls(JsonWriter& writer, std::span<const ToolCall> calls, size_t first_index) {
  writer.key("tool_calls").begin_array();
  for (const ToolCall& call : calls) {
    const auto index = static_cast<int64_t>(first_index++);
    if (!is_whole_call(call)) continue;
    writer.begin_object().member("id", call.id).key("function").begin_object();
    writer.member("index", index).member("name", call.name);
    writer.key("arguments").raw(call.arguments).end_object().end_object();
  }
  writer.end_array();
}

// What an object of an answer has of the text, which is in the message of a chat.
struct OllamaPiece {
  std::string_view text;
  std::string_view thinking = {};
  std::span<const ToolCall> calls = {};
  size_t first_call = 0;  // its index

  bool is_empty() const { return text.empty() && thinking.empty() && calls.empty(); }
};

void write_ollama_piece(JsonWriter& writer, OllamaShape shape, const OllamaPiece& piece) {
  if (shape == OllamaShape::chat) {
    writer.key("message").begin_object().member("role", "assistant");
    writer.member("content", piece.text);
  } else {
    writer.member("response", piece.text);
  }
  if (!piece.thinking.empty()) writer.member("thinking", piece.thinking);
  if (!piece.calls.empty()) write_ollama_calls(writer, piece.calls, piece.first_call);
  if (shape == OllamaShape::chat) writer.end_object();
}

// An object of an answer; `write` writes the members behind its text.
template <class Write>
std::string ollama_json(OllamaShape shape, std::string_view model, const ResponseHead& head,
                        const OllamaPiece& piece, const Write& write) {
  return object_json([&](JsonWriter& writer) {
    writer.member("model", model);
    writer.member("created_at", rfc3339(head.created, head.created_micros));
    write_ollama_piece(writer, shape, piece);
    write(writer);
  });
}

int64_t nanoseconds(double seconds) {
  constexpr double kPerSecond = 1e9;
  return std::llround(seconds * kPerSecond);
}

// The time until the first step counts as that of loading, as it does there.
void write_durations(JsonWriter& writer, const ResponseTimings& timings) {
  const Timings& times = timings.times;
  writer.member("total_duration",
                nanoseconds(times.queue_seconds + times.prompt_seconds + times.output_seconds));
  writer.member("load_duration", nanoseconds(times.queue_seconds));
  writer.member("prompt_eval_count", timings.tokens.prompt_tokens);
  writer.member("prompt_eval_duration", nanoseconds(times.prompt_seconds));
  writer.member("eval_count", timings.tokens.completion_tokens);
  writer.member("eval_duration", nanoseconds(times.output_seconds));
}

class OllamaWriter : public ChoiceWriter {
 public:
  OllamaWriter(OllamaShape shape, const OllamaRequest& asked)
      : shape_(shape), model_(asked.model), returns_context_(asked.returns_context) {}

  std::string_view id_prefix() const override { return "ollama-"; }

  void see_prompts(const PromptFacts& facts) override {
    if (model_.empty()) model_ = facts.model;
    if (returns_context_) context_ = facts.requests.front()->prompt;
  }

  std::string whole(const ChoicesResponse& answer) override {
    const ResponseChoice& choice = answer.choices.front();
    head_ = answer.head;
    if (choice.token_ids) add_context(*choice.token_ids);
    OllamaPiece piece{.text = choice.text ? std::string_view(*choice.text) : std::string_view()};
    if (choice.turn) {
      piece = {.text = choice.turn->content,
               .thinking = choice.turn->reasoning,
               .calls = choice.turn->tool_calls};
    }
    return end_json(piece, choice);
  }

  void begin(const AnswerStart& start, std::string& /*out*/) override { head_ = start.head; }

  void chunk(const ResponseChunk& chunk, std::string& out) override {
    if (chunk.token_ids) add_context(*chunk.token_ids);
    OllamaPiece piece{.text = chunk.text.value_or("")};
    if (chunk.turn != nullptr) {
      if (!chunk.turn->call_index || chunk.turn->begins_call) finish_call(out);
      piece = {.text = chunk.turn->content, .thinking = chunk.turn->reasoning};
      add_to_call(*chunk.turn);
    }
    const bool has_tokens = chunk.logprobs && !chunk.logprobs->empty();
    if (!piece.is_empty() || has_tokens) write_line(piece, chunk.logprobs, out);
    if (chunk.ending == nullptr) return;
    finish_call(out);
    ResponseChoice ending = *chunk.ending;
    ending.logprobs.reset();
    out += end_json({}, ending) + "\n";
  }

  void end(const ResponseUsage& /*usage*/, std::string& /*out*/) override {}

  void fail(const ApiError& error, std::string& out) override {
    out += ollama_error(error, {}).body + "\n";
  }

  // Clients parse_ollama every line, so there is none that says nothing: blanks in front of an
  // object are part of its line.
  void ping(std::string& out) override { out += ' '; }

 private:
  void add_context(std::span<const int32_t> ids) {
    if (returns_context_) context_.insert(context_.end(), ids.begin(), ids.end());
  }

  // Calls come whole, so their pieces are gathered.
  void add_to_call(const TurnDelta& delta) {
    if (!delta.call_index) return;
    if (delta.begins_call) open_call_ = {.id = delta.call_id, .name = delta.call_name};
    if (open_call_) open_call_->arguments += delta.arguments;
  }

  void finish_call(std::string& out) {
    if (!open_call_) return;
    const ToolCall call = *std::exchange(open_call_, std::nullopt);
    if (is_whole_call(call)) write_line({.calls = {&call, 1}, .first_call = num_calls_}, {}, out);
    ++num_calls_;
  }

  void write_line(const OllamaPiece& piece, const ReportedTokens& tokens, std::string& out) {
    out += ollama_json(shape_, model_, head_, piece, [&](JsonWriter& writer) {
      writer.member("done", false);
      write_tokens(writer, tokens);
    });
    out += '\n';
  }

  std::string end_json(const OllamaPiece& piece, const ResponseChoice& choice) {
    return ollama_json(shape_, model_, head_, piece, [&](JsonWriter& writer) {
      writer.member("done", true);
      writer.member("done_reason", choice.finish_reason == "length" ? "length" : "stop");
      write_tokens(writer, choice.logprobs);
      if (returns_context_) writer.member("context", context_);
      if (choice.timings) write_durations(writer, *choice.timings);
      if (!head_.warnings.empty()) write_warnings(writer, head_.warnings);
    });
  }

  static void write_tokens(JsonWriter& writer, const ReportedTokens& tokens) {
    if (!tokens) return;
    writer.key("logprobs");
    write_chat_logprobs(writer, *tokens, TokenNaming::text);
  }

  OllamaShape shape_;
  std::string model_;
  bool returns_context_;
  ResponseHead head_;
  std::vector<int32_t> context_;
  std::optional<ToolCall> open_call_;
  size_t num_calls_ = 0;
};

template <OllamaShape shape>
std::string write_loaded(const LoadCall& call, const ResponseHead& head) {
  const std::string_view model = call.model.empty() ? head.model : call.model;
  return ollama_json(shape, model, head, {}, [&](JsonWriter& writer) {
    writer.member("done", true).member("done_reason", call.unloads() ? "unload" : "load");
  });
}

template <OllamaShape shape, OllamaRequest (*parse_request)(const Json&, const RequestTerms&)>
Call parse_ollama(const Json& body, const CallTerms& terms) {
  OllamaRequest asked = parse_request(body, terms.limits);
  if (asked.is_load) {
    auto& common = std::visit([](auto& one) -> CommonFields& { return one.common; }, asked.request);
    return LoadCall{
        .common = std::move(common), .model = std::move(asked.model), .write = write_loaded<shape>};
  }
  auto writer = std::make_unique<OllamaWriter>(shape, asked);
  return GenerationCall{.request = std::move(asked.request), .writer = std::move(writer)};
}

std::string write_ollama_embeddings(const ItemRequest& /*request*/, ItemAnswer answer,
                                    const TokenNames& /*names*/) {
  return object_json([&](JsonWriter& writer) {
    writer.member("model", answer.head.model).member("embeddings", answer.embeddings);
    writer.member("prompt_eval_count", answer.usage.prompt_tokens);
  });
}

std::string write_no_embeddings(const LoadCall& call, const ResponseHead& head) {
  return object_json([&](JsonWriter& writer) {
    writer.member("model", call.model.empty() ? head.model : call.model);
    writer.key("embeddings").begin_array().end_array();
  });
}

std::string write_ollama_embedding(const ItemRequest& /*request*/, ItemAnswer answer,
                                   const TokenNames& /*names*/) {
  return object_json(
      [&](JsonWriter& writer) { writer.member("embedding", answer.embeddings.front()); });
}

std::string write_no_embedding(const LoadCall& /*call*/, const ResponseHead& /*head*/) {
  return R"({"embedding":[]})";
}

template <OllamaEmbedRequest (*parse_request)(const Json&, const RequestTerms&), auto write,
          auto write_nothing>
Call parse_ollama_input(const Json& body, const CallTerms& terms) {
  OllamaEmbedRequest asked = parse_request(body, terms.limits);
  if (asked.is_load) {
    return LoadCall{.common = std::move(asked.request.common),
                    .model = std::move(asked.model),
                    .write = write_nothing};
  }
  return ItemCall{
      .request = std::move(asked.request), .id_prefix = kEmbeddingIdPrefix, .write = write};
}

constexpr Dialect ollama_dialect(decltype(Dialect::fields) fields, decltype(Dialect::parse) parse) {
  return {.fields = fields, .parse = parse, .error = ollama_error, .error_schema = "OllamaError"};
}

constexpr Dialect with_lines(Dialect dialect) {
  dialect.stream_type = "application/x-ndjson";
  return dialect;
}

}  // namespace

ErrorAnswer ollama_error(const ApiError& error, std::string_view /*request_id*/) {
  std::string json;
  JsonWriter(json).begin_object().member("error", error.message).end_object();
  return {.status = openai_kind(error.reason).status, .body = std::move(json)};
}

const Dialect kOllamaChatDialect = with_lines(
    ollama_dialect(ollama_chat_fields, parse_ollama<OllamaShape::chat, parse_ollama_chat>));
const Dialect kOllamaGenerateDialect = with_lines(ollama_dialect(
    ollama_generate_fields, parse_ollama<OllamaShape::generate, parse_ollama_generate>));
const Dialect kOllamaEmbedDialect = ollama_dialect(
    ollama_embed_fields,
    parse_ollama_input<parse_ollama_embed, write_ollama_embeddings, write_no_embeddings>);
const Dialect kOllamaEmbeddingsDialect = ollama_dialect(
    ollama_embeddings_fields,
    parse_ollama_input<parse_ollama_embeddings, write_ollama_embedding, write_no_embedding>);
const Dialect kOllamaListDialect = ollama_dialect(nullptr, nullptr);

}  // namespace paceline
