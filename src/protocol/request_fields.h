// The fields that several kinds of requests share, and the limits of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/request.h"
#include "paceline/constraint_spec.h"
#include "paceline/options.h"
#include "protocol/request_reader.h"
#include "text/generation_options.h"

namespace paceline {

class ConstraintCache;

// Limits of every request, beside those of generation options and kMaxChoices.
constexpr uint64_t kMaxLabels = 1024;
constexpr uint64_t kMaxSaltBytes = 1024;

// Types of the number of alternatives beside a token, and of max_tokens.
inline constexpr FieldType kNumTopLogprobs = integer_type(generation_option("logprobs").range);
inline constexpr FieldType kOutputTokens = integer_type(generation_option("max_tokens").range);

inline constexpr FieldType kNumChoices = {
    .kind = FieldKind::integer, .min = 1, .max = kMaxChoices, .counts_choices = true};
// Of the format of an answer.
inline constexpr std::string_view kFormatWords[] = {"text", "json_object", "json_schema"};
inline constexpr std::string_view kReasoningEfforts[] = {"none", "minimal", "low", "medium",
                                                         "high", "xhigh",   "max"};
// Of strict, beside a schema of an answer or of a tool's arguments.
inline constexpr std::string_view kStrictSchemaHelp =
    "Refuse a schema with a part that can't be enforced, or a format that isn't known; else such "
    "parts are left out and named in the answer's warnings.";
inline constexpr std::string_view kStrictParametersHelp =
    "Refuse parameters with a part that can't be enforced, or a format that isn't known; else such "
    "parts are left out and named in the answer's warnings.";

// The default of max_tokens; the context may end a text sooner.
constexpr int64_t kDefaultCompletionTokens = 16;

constexpr uint64_t kMaxPrompts = 128;  // of a completion
constexpr uint64_t kMaxInputs = 2048;  // of a classification or a score

// Text, or token ids that are used as they are.
using PromptText = std::variant<std::string, std::vector<int32_t>>;

// A prompt made of text and token ids that follow one another. Special tokens are recognised in
// every text, and added before one that begins the prompt.
using PromptPiece = std::variant<std::string, int32_t>;
using MixedPrompt = std::vector<PromptPiece>;

struct PromptList {
  std::vector<PromptText> prompts;
  bool is_array = false;  // of prompts; then messages call them "prompt[0]", ...

  // The name of a prompt in messages; `field` is the request's.
  std::string name(std::string_view field, size_t index) const;
};

// `value` must match one of the types below.
PromptList read_prompts(const FieldValue& value);

inline constexpr FieldType kPromptTexts = array_type(kAnyText, 1, kMaxPrompts);
inline constexpr FieldType kPromptIds = array_type(kTokenIds, 1, kMaxPrompts);
inline constexpr FieldType kInputTexts = array_type(kAnyText, 1, kMaxInputs);
inline constexpr FieldType kInputIds = array_type(kTokenIds, 1, kMaxInputs);
inline constexpr std::string_view kAnyPrompts =
    "a string, an array of strings, of token ids, or of arrays of token ids";
inline constexpr FieldType kPrompts =
    one_of_type<kAnyText, kPromptTexts, kTokenIds, kPromptIds>(kAnyPrompts);
inline constexpr FieldType kInputs =
    one_of_type<kAnyText, kInputTexts, kTokenIds, kInputIds>(kAnyPrompts);
inline constexpr FieldType kOnePrompt =
    one_of_type<kAnyText, kTokenIds>("a string or an array of token ids");

// Fields of every request.
struct CommonFields {
  std::optional<std::string> model;
  std::string lora;  // the adapter that `model` names; empty: none
  // Neither changes an answer: they decide when it is computed, and which requests share its cache.
  int32_t priority = 0;
  std::string cache_salt;
  // How long the model stays loaded after the request; below 0: for ever. Nothing: as the server
  // says.
  std::optional<double> keep_alive_seconds;
};

struct StreamFields {
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;  // in every chunk
  bool include_accepted = false;  // chunks mark the text of drafted tokens
  int64_t interval = 1;           // tokens of a chunk, but for the first and the last one
  bool has_options = false;       // stream_options was there
};

// The constraint of a request, which has at most one.
struct AskedConstraint {
  std::optional<ConstraintSpec> spec;
  std::string field;  // its path, for messages
};

// The number of choices, and what is reported of them.
struct GenerationFields {
  int32_t n = 1;
  std::optional<int32_t> prompt_logprobs;  // alternatives beside each token of the prompt
  bool return_token_ids = false;
  bool timings = false;                     // each choice reports its times
  bool return_tokens_as_token_ids = false;  // tokens are written "token_id:N"
  bool has_negative_seed = false;           // the answer reports it as a negative number
  std::optional<int64_t> penalised_tokens;  // llama.cpp's repeat_last_n; -1: all
  AskedConstraint constraint;
  StreamFields streaming;
};

// Alternatives reported beside each token of the answer to a request for `num_top`.
std::optional<int32_t> num_alternatives(const GenerateOptions& options,
                                        std::optional<int32_t> num_top);
SpecialTokens specials_of(const GenerateOptions& options);
// Whether the body has a seed below 0, whose bits are in options.seed.
bool has_negative_seed(const Json& body);

// Throws RequestError for logprob ids without a request for log-probabilities.
void check_logprob_fields(const GenerateOptions& options, bool has_logprobs);

FieldTable<CommonFields> common_fields();
FieldTable<GenerationFields> generation_fields();
// What the text of an answer must be, under all the names that APIs give the fields.
FieldTable<AskedConstraint> constraint_fields();
// The generation options: for sampling, and for requests for text only.
FieldTable<GenerateOptions> sampling_fields();
FieldTable<GenerateOptions> text_fields();

// Of requests whose fields are the common ones, the clients' and those of their own tables.
template <const auto& fields, const auto&... more>
TargetOf<fields> read_common_body(const Json& body, const RequestTerms& terms) {
  TargetOf<fields> request;
  RequestReader reader(body, terms);
  reader.read(common_fields(), request.common);
  read_client_fields(FieldLevel::request, reader);
  reader.read(table_of(fields), request);
  (reader.read(table_of(more), request), ...);
  reader.finish();
  return request;
}
template <const auto&... fields>
FieldList common_and_own_fields() {
  FieldList list = list_fields(common_fields());
  append_client_fields(FieldLevel::request, list);
  (append_fields(table_of(fields), list), ...);
  return list;
}

// Of requests for text: the common fields, the clients', and those of options, choices and
// constraints, ...
template <class Request>
void read_generation(RequestReader& reader, Request& request) {
  reader.read(common_fields(), request.common);
  read_client_fields(FieldLevel::request, reader);
  reader.read(sampling_fields(), request.options);
  reader.read(text_fields(), request.options);
  reader.read(generation_fields(), request.generation);
  reader.read(constraint_fields(), request.generation.constraint);
}
// ... and what they mean for the options.
template <class Request>
void finish_generation(const Json& body, Request& request) {
  request.options.constraint = request.generation.constraint.spec;
  request.options.constraint_name = request.generation.constraint.field;
  request.generation.has_negative_seed = has_negative_seed(body);
}
void append_generation_fields(FieldList& list);

// Compiles it, so that the request finds it in the cache. Throws RequestError naming the field;
// does nothing without a constraint, or a cache.
void check_constraint(const AskedConstraint& asked, ConstraintCache* cache);

// Check fields that depend on each other.
void check_penalty_fields(const GenerationFields& fields, const GenerateOptions& options);
void check_stream_fields(const StreamFields& streaming);

}  // namespace paceline
