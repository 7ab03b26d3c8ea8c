// Dialect: one API as pure functions. `parse` makes a Call of a request's body; the call says what
// the core shall do, in the core's terms, and brings what writes the answer as the API has it.
// What generates, embeds or classifies knows no dialect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/request.h"
#include "protocol/api_error.h"
#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completed_responses.h"
#include "protocol/completion_request.h"
#include "protocol/decision_request.h"
#include "protocol/embedding_request.h"
#include "protocol/field_type.h"
#include "protocol/pair_score_request.h"
#include "protocol/response.h"
#include "protocol/response_store.h"
#include "protocol/seal.h"
#include "protocol/token_names.h"
#include "protocol/token_score_request.h"

namespace paceline {

// What the answer may tell of the model and of the prompts, once they are encoded.
struct PromptFacts {
  const TokenNames& names;
  std::string_view model;   // its name
  int64_t context = 0;      // tokens of a prompt and its text together, at most
  int64_t max_drafted = 0;  // tokens in a step, of the server's drafter; 0: it has none
  std::span<const GenerateRequest* const> requests;  // one a prompt
};

struct AnswerStart {
  ResponseHead head;
  ResponseUsage usage = {};  // the prompts' tokens
  size_t num_choices = 1;    // of all prompts
};

// Writes the answer of one generation: whole, or as the events of a stream, which it appends to
// `out` with their framing. It sees values only, and its calls come from one thread at a time.
class ChoiceWriter {
 public:
  virtual ~ChoiceWriter() = default;

  virtual std::string_view id_prefix() const = 0;
  // Before anything is computed.
  virtual void see_prompts(const PromptFacts& /*facts*/) {}

  // The answer to a call in the background: what its own answer will be is read later.
  virtual std::string accepted(const ResponseHead& /*head*/) { return {}; }
  virtual std::string whole(const ChoicesResponse& answer) = 0;

  // A stream: begin, chunks, and end or fail. What begin writes is sent with the first chunk.
  virtual void begin(const AnswerStart& start, std::string& out) = 0;
  virtual void chunk(const ResponseChunk& chunk, std::string& out) = 0;
  virtual void end(const ResponseUsage& usage, std::string& out) = 0;
  virtual void fail(const ApiError& error, std::string& out) = 0;
  // Says that the request is still being computed. The default is a comment of an event stream.
  virtual void ping(std::string& out) { out += ": ping\n\n"; }
};

// Appends a server-sent event of this type; `write` adds its other members.
template <class Write>
void append_typed_event(std::string_view type, std::string& out, const Write& write) {
  out.append("event: ").append(type).append("\ndata: ");
  JsonWriter writer(out);
  writer.begin_object().member("type", type);
  write(writer);
  writer.end_object();
  out += "\n\n";
}

constexpr std::string_view kCompletionIdPrefix = "cmpl-";  // of llama.cpp's answers too

using GenerationRequest = std::variant<CompletionRequest, ChatRequest>;

struct GenerationCall {
  GenerationRequest request;
  std::unique_ptr<ChoiceWriter> writer;
  bool is_background = false;  // computed without its connection, whose answer is `accepted`
};

using ItemRequest = std::variant<ClassificationRequest, TokenScoreRequest, EmbeddingRequest,
                                 PairScoreRequest, RerankRequest, DecisionRequest>;

// Computed whole; `write` makes the answer's body.
struct ItemCall {
  ItemRequest request;
  std::string_view id_prefix;
  std::string (*write)(const ItemRequest& request, ItemAnswer answer, const TokenNames& names);
};

// Asks how many tokens a conversation's prompt has.
struct CountCall {
  ChatRequest request;
  std::string (*write)(int64_t num_tokens);
};

// Loads the model, or unloads it where common.keep_alive_seconds is 0; computes nothing.
struct LoadCall {
  CommonFields common;
  std::string model;  // as asked
  std::string (*write)(const LoadCall& call, const ResponseHead& head);

  bool unloads() const { return common.keep_alive_seconds == 0; }
};

using Call = std::variant<GenerationCall, ItemCall, CountCall, LoadCall>;

const CommonFields& common_fields_of(const Call& call);
CommonFields& common_fields_of(Call& call);

struct ErrorAnswer {
  int status = 500;
  std::string body;
};

// An error as OpenAI's API has it, which is that of all routes without a dialect of their own.
ErrorAnswer openai_error(const ApiError& error, std::string_view request_id);
// As Ollama's has it: {"error": "..."}.
ErrorAnswer ollama_error(const ApiError& error, std::string_view request_id);

// What a dialect's `parse` may use besides the body.
struct CallTerms {
  const RequestTerms& limits;
  std::string owner = {};  // of the request's key: stored state belongs to it
  // Of what clients keep, and of what is kept for them; both outlive the call and its writer.
  const Seal* seal = nullptr;
  ResponseStore* store = nullptr;
  std::string_view compaction_prompt = {};  // empty: the default one
  int64_t max_compaction_tokens = 4096;     // of a request that doesn't say how many
};

struct Dialect {
  FieldList (*fields)() = nullptr;  // of the body
  // Throws RequestError naming the first field that is wrong, unknown or not supported.
  Call (*parse)(const Json& body, const CallTerms& terms) = nullptr;
  ErrorAnswer (*error)(const ApiError& error, std::string_view request_id) = openai_error;
  std::string_view stream_type = "text/event-stream";
  std::string_view error_schema = "Error";  // of response_schemas_json()
  std::string_view id_header = {};          // that has the request's id, beside x-request-id
};

// OpenAI's.
extern const Dialect kChatDialect;
extern const Dialect kCompletionDialect;
extern const Dialect kEmbeddingDialect;
extern const Dialect kDecisionDialect;
extern const Dialect kResponsesDialect;
extern const Dialect kCompactionDialect;
extern const Dialect kInputTokensDialect;
// Anthropic's.
extern const Dialect kMessagesDialect;
extern const Dialect kMessageCountDialect;
// llama.cpp's.
extern const Dialect kLlamaDialect;
extern const Dialect kInfillDialect;
// TypeSafe's.
extern const Dialect kSystemOneDialect;
// Ollama's.
extern const Dialect kOllamaChatDialect;
extern const Dialect kOllamaGenerateDialect;
extern const Dialect kOllamaEmbedDialect;
extern const Dialect kOllamaEmbeddingsDialect;
extern const Dialect kOllamaListDialect;  // of what computes nothing: errors only
// vLLM's, Jina's and Paceline's own.
extern const Dialect kGenerateDialect;
extern const Dialect kClassificationDialect;
extern const Dialect kTokenScoreDialect;
extern const Dialect kPairScoreDialect;
extern const Dialect kRerankDialect;

// Each of them.
std::span<const Dialect* const> all_dialects();

}  // namespace paceline
