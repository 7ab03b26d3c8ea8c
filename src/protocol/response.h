// The parts of the answers of all endpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_writer.h"
#include "paceline/decisions.h"
#include "paceline/results.h"

namespace paceline {

struct ResponseHead {
  std::string id;
  int64_t created = 0;         // seconds since 1970
  int64_t created_micros = 0;  // after that second
  std::string model;
  std::string system_fingerprint;  // empty: not reported
  // The member that has the reasoning: reasoning_content, or reasoning.
  std::string reasoning_field = "reasoning_content";
  std::vector<std::string> warnings = {};  // what was asked for and not done
};

struct ResponseUsage {
  int64_t prompt_tokens = 0;             // each prompt counts once, whatever n is
  int64_t completion_tokens = 0;         // of all choices
  std::optional<int64_t> cached_tokens;  // of the prompts, from the cache; nothing: unknown
  int64_t drafted_tokens = 0;            // of all choices, by speculative decoding
  int64_t accepted_tokens = 0;           // of these, drawn
  bool has_prediction = false;           // of the output, in the request: the drafts are reported
  std::optional<int64_t> reasoning_tokens;  // of all choices; nothing: answers have no reasoning
};

struct NamedToken {
  int32_t id = 0;
  std::optional<std::string> bytes;  // its bytes inside a text; nothing: unknown
};

struct RankedToken {
  NamedToken token;
  float logprob = 0;
};

// A token of a prompt or an answer with its log-probability.
struct ReportedToken {
  NamedToken token;
  std::optional<float> logprob;  // nothing for the first token of a prompt
  std::vector<RankedToken> top;  // the likeliest first
  size_t text_bytes = 0;         // its bytes of the choice's text
};

// Nothing: log-probabilities aren't reported.
using ReportedTokens = std::optional<std::vector<ReportedToken>>;

// Tokens and seconds of a choice.
struct ResponseTimings {
  Usage tokens;
  Timings times;
};

using StopReason = std::optional<std::variant<int32_t, std::string>>;

// A choice of a completion or chat.
struct ResponseChoice {
  int64_t index = 0;
  std::optional<std::string> text;  // well-formed UTF-8; nothing without a tokenizer
  std::optional<TurnParts> turn;    // the text taken apart, where that is done
  std::string finish_reason;
  StopReason stop_reason;
  ReportedTokens logprobs;
  ReportedTokens prompt_logprobs;
  std::optional<std::vector<int32_t>> token_ids;
  std::optional<ResponseTimings> timings;
  uint64_t seed = 0;            // the one used
  bool is_seed_signed = false;  // as in the request
};

// How log-probabilities name tokens.
enum class TokenNaming : uint8_t { text, id };

// The answer of completions and chats.
struct ChoicesResponse {
  ResponseHead head;
  std::vector<ResponseChoice> choices;  // by prompt, then by k: index = prompt * n + k
  ResponseUsage usage;
  TokenNaming naming = TokenNaming::text;
};

// The results of one prompt of a request.
struct CompletedPart {
  std::vector<Completion> choices;  // n of them, or best_of, at least one; or
  Classification classification;    // or
  std::vector<float> embedding;
  int64_t prompt_tokens = 0;  // of a classification or an embedding
};

// The results of a request that is computed whole for each of several inputs, in their order: the
// member of its kind.
struct ItemAnswer {
  ResponseHead head;
  ResponseUsage usage;
  std::vector<CompletedPart> classified = {};
  std::vector<std::vector<Logprob>> scored = {};
  std::vector<std::vector<float>> embeddings = {};
  std::vector<float> pair_scores = {};
  Decisions decisions = {};
};

// JSON; `write_body` writes the members between a choice's index and its end.
std::string choices_json(const ChoicesResponse& answer, std::string_view object,
                         void (*write_body)(JsonWriter& writer, const ResponseChoice& choice,
                                            const ChoicesResponse& answer));

void write_head(JsonWriter& writer, const ResponseHead& head, std::string_view object);
// Estimates of JSON text: a number with its comma, and a token with its log-probability.
constexpr int64_t kJsonNumberBytes = 12;
constexpr int64_t kJsonLogprobBytes = 64;

// The member "warnings", at most 32 of them.
void write_warnings(JsonWriter& writer, const std::vector<std::string>& warnings);
// The member "usage".
void write_usage(JsonWriter& writer, const ResponseUsage& usage);
// The member "usage" as OpenAI's newer APIs have it.
void write_input_output_usage(JsonWriter& writer, const ResponseUsage& usage,
                              int64_t cache_write_tokens);
// The member "seed".
void write_seed(JsonWriter& writer, const ResponseChoice& choice);
// The member "timings", with the names of llama.cpp's server, and queue_ms and ttft_ms.
void write_timings(JsonWriter& writer, const ResponseTimings& timings);
// The members finish_reason, stop_reason, prompt_logprobs, token_ids and timings (when there are
// some), seed.
void write_choice_end(JsonWriter& writer, const ResponseChoice& choice);

// {"id", "object": "list", "created", "model", NAME: [{...}, ...], "usage"}; `write` writes the
// members of an item, given its index.
template <class Write>
std::string list_json(const ItemAnswer& answer, std::string_view name, size_t num_items,
                      const Write& write) {
  return object_json([&](JsonWriter& writer) {
    write_head(writer, answer.head, "list");
    writer.key(name).begin_array();
    for (size_t i = 0; i < num_items; ++i) {
      writer.begin_object();
      write(writer, i);
      writer.end_object();
    }
    writer.end_array();
    write_usage(writer, answer.usage);
  });
}

// A part of a chunk's text: of drafted tokens, or of others.
struct TextPiece {
  std::string text;
  bool is_accepted = false;
};

// What a piece says of a turn that is taken apart: parts of its texts, or of one call.
struct TurnDelta {
  std::string reasoning;
  std::string content;
  std::optional<size_t> call_index;
  bool begins_call = false;  // with `call_id` and `call_name`
  std::string call_id;
  std::string call_name;
  std::string arguments;
};

struct ResponseChunk {
  int64_t index = 0;                          // of the choice
  bool has_role = false;                      // the first chunk of a chat's choice
  std::optional<std::string_view> text = {};  // nothing without a tokenizer
  const TurnDelta* turn = nullptr;            // instead of the text, where it is taken apart
  // With the text of its tokens, and the characters of the choice's text before that.
  ReportedTokens logprobs = {};
  std::string_view named_text = {};
  int64_t text_offset = 0;
  std::optional<std::vector<int32_t>> token_ids = {};
  std::vector<TextPiece> pieces = {};       // reported if there are any
  int64_t cached_tokens = 0;                // of the choice's prompt
  std::optional<ResponseUsage> usage = {};  // so far, when every chunk reports it
  // In the last chunk of a choice. Its text, log-probabilities and ids are ignored.
  const ResponseChoice* ending = nullptr;
};

// The members finish_reason, pieces and token_ids; in the last chunk also stop_reason and the
// others.
void write_chunk_end(JsonWriter& writer, const ResponseChunk& chunk);

// Writes the members role, content, `reasoning_field` and tool_calls: of `turn` where the text was
// taken apart, else of `text`. The content of a turn that is, or had to be, calls alone is null.
void write_assistant_message(JsonWriter& writer, const std::optional<std::string>& text,
                             const std::optional<TurnParts>& turn,
                             std::string_view reasoning_field = "reasoning_content");

// A head with a random id and the current time.
ResponseHead new_head(std::string_view id_prefix, std::string model);

// A time since 1970 as RFC 3339 writes it: "2023-12-12T14:13:43.416799Z".
std::string rfc3339(int64_t seconds, int64_t micros = 0);

// "cmpl-" and 24 random hexadecimal digits, for the prefix "cmpl-".
std::string random_id(std::string_view prefix);

}  // namespace paceline
