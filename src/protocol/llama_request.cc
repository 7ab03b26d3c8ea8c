#include "protocol/llama_request.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "protocol/client_fields.h"

namespace paceline {
namespace {

constexpr FieldType kPieceKinds[] = {kAnyText, kTokenId};
constexpr FieldType kPiece = one_of_type(kPieceKinds, "a string or a token id");
constexpr FieldType kPieces = array_type(kPiece, 1, kMaxListedTokens);
constexpr FieldType kPromptItemKinds[] = {kAnyText, kTokenId, kPieces};
constexpr FieldType kPromptItem =
    one_of_type(kPromptItemKinds, "a string, a token id, or an array of them");
constexpr FieldType kLlamaPromptKinds[] = {kAnyText, array_type(kPromptItem, 1, kMaxListedTokens)};
constexpr FieldType kLlamaPrompt = one_of_type(
    kLlamaPromptKinds, "a string, an array of strings and token ids, or an array of such prompts");

constexpr FieldType kOnlyNone = {
    .kind = FieldKind::array, .max = 0, .is_part_of_api = true, .expected = "an empty array"};
constexpr FieldType kAnyTexts = array_type(kAnyText, 0, kMaxListedTokens);
constexpr int64_t kUntilTheContextEnds = -2;  // and -1
constexpr FieldType kNumPredicted = integer_type(kUntilTheContextEnds, kMaxOutputTokens);
constexpr FieldType kNumCompletions = {
    .kind = FieldKind::integer, .min = 1, .max = kMaxChoices, .counts_choices = true};

MixedPrompt read_pieces(const FieldValue& value) {
  if (value.json().is_string()) return {value.text()};
  MixedPrompt pieces;
  for (const Json& piece : value.at().array()) {
    if (piece.is_string()) {
      pieces.emplace_back(*piece.string());
    } else {
      pieces.emplace_back(static_cast<int32_t>(*piece.integer()));
    }
  }
  return pieces;
}

// An array holds several prompts if it has an array in it, or strings only.
bool holds_several_prompts(const Json::Array& items) {
  const bool has_array =
      std::any_of(items.begin(), items.end(), [](const Json& one) { return one.is_array(); });
  return has_array ||
         std::all_of(items.begin(), items.end(), [](const Json& one) { return one.is_string(); });
}

void read_llama_prompts(const FieldValue& value, LlamaRequest& target) {
  if (value.json().is_string() || !holds_several_prompts(value.at().array())) {
    target.completion.mixed_prompts = {read_pieces(value)};
    return;
  }
  const std::vector<FieldValue> items = value.items();
  if (items.size() > kMaxPrompts) value.refuse("at most 128 prompts");
  for (const FieldValue& item : items) {
    if (item.json().is_number()) item.refuse("a string or an array, as the other prompts are");
    target.completion.mixed_prompts.push_back(read_pieces(item));
  }
}

void read_num_predicted(const FieldValue& value, LlamaRequest& target) {
  const int64_t count = value.integer();
  target.completion.options.max_tokens = count < 0 ? static_cast<int64_t>(kMaxOutputTokens) : count;
}

void read_num_probs(const FieldValue& value, LlamaRequest& target) {
  target.completion.as_probabilities = value.small_integer() > 0;
  if (target.completion.as_probabilities) target.completion.logprobs = value.small_integer();
}

constexpr FieldDef<LlamaRequest> kLlamaFields[] = {
    {.name = "n_predict",
     .type = kNumPredicted,
     .by_default = int64_t{-1},
     .help = "Stop after this many tokens; -1 or -2: when the context is full.",
     .read = read_num_predicted},
    {.name = "max_tokens",
     .type = kNumPredicted,
     .alias_of = "n_predict",
     .help = "OpenAI's name of it.",
     .read = read_num_predicted},
    {.name = "n_cmpl",
     .type = kNumCompletions,
     .alias_of = "n",
     .help = "llama.cpp's newer name of it.",
     .read = [](const FieldValue& v,
                LlamaRequest& t) { t.completion.generation.n = v.small_integer(); }},
    {.name = "n_probs",
     .type = kNumTopLogprobs,
     .by_default = int64_t{0},
     .help = "Report each token's log-probability and this many alternatives; 0: none.",
     .read = read_num_probs},
    {.name = "logprobs",
     .type = kNumTopLogprobs,
     .alias_of = "n_probs",
     .help = "OpenAI's name of it.",
     .read = read_num_probs},
    {.name = "add_special_tokens",
     .type = kBoolean,
     .by_default = true,
     .help = "Begin a prompt that begins with text with the special tokens (BOS) of the tokenizer.",
     .read = [](const FieldValue& v,
                LlamaRequest& t) { t.completion.options.add_special_tokens = v.boolean(); }},
    {.name = "n_keep",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "No token is ever discarded: the text ends when the context is full."},
    {.name = "n_discard",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "No token is ever discarded."},
    {.name = "n_cache_reuse",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "Cached prompts are shared from their beginning only."},
    {.name = "t_max_predict_ms",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "An answer never depends on the time it takes; limit n_predict instead."},
    {.name = "t_max_prompt_ms",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "An answer never depends on the time it takes."},
    {.name = "timings_per_token",
     .type = kBoolean,
     .use = FieldUse::accepted,
     .help = "Timings come with the end of the text."},
    {.name = "sse_ping_interval",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "A silent stream sends a comment every 15 s."},
    {.name = "typ_p",
     .type = number_type({0, 1, true}),
     .alias_of = "typical_p",
     .help = "llama.cpp's older name of it.",
     .read = [](const FieldValue& v,
                LlamaRequest& t) { t.completion.options.typical_p = v.number(); }},
    {.name = "tfs_z", .type = kOnlyOne, .by_default = 1.0, .help = "Only 1 (off)."},
    {.name = "dynatemp_range", .type = kOnlyZero, .by_default = 0.0, .help = "Only 0 (off)."},
    {.name = "dynatemp_exponent",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "Of dynatemp_range."},
    {.name = "mirostat", .type = kOnlyZero, .by_default = 0.0, .help = "Only 0 (off)."},
    {.name = "mirostat_tau", .type = kAnyNumber, .use = FieldUse::accepted, .help = "Of mirostat."},
    {.name = "mirostat_eta", .type = kAnyNumber, .use = FieldUse::accepted, .help = "Of mirostat."},
    {.name = "dry_multiplier", .type = kOnlyZero, .by_default = 0.0, .help = "Only 0 (off)."},
    {.name = "dry_base",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "Of dry_multiplier."},
    {.name = "dry_allowed_length",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "Of dry_multiplier."},
    {.name = "dry_penalty_last_n",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "Of dry_multiplier."},
    {.name = "dry_sequence_breakers",
     .type = kAnyTexts,
     .use = FieldUse::accepted,
     .help = "Of dry_multiplier."},
    {.name = "xtc_probability", .type = kOnlyZero, .by_default = 0.0, .help = "Only 0 (off)."},
    {.name = "xtc_threshold",
     .type = kAnyNumber,
     .use = FieldUse::accepted,
     .help = "Of xtc_probability."},
    {.name = "min_keep", .type = kOnlyZero, .by_default = 0.0, .help = "Only 0."},
    {.name = "n_indent", .type = kOnlyZero, .by_default = 0.0, .help = "Only 0."},
    {.name = "post_sampling_probs",
     .type = kOnlyFalse,
     .by_default = false,
     .help = "Only false: log-probabilities are the model's own."},
    {.name = "return_progress", .type = kOnlyFalse, .by_default = false, .help = "Only false."},
    {.name = "lora", .type = kOnlyNone, .help = "Only an empty array: model chooses an adapter."},
    {.name = "image_data", .type = kOnlyNone, .help = "Only an empty array."},
    {.name = "timings",
     .type = kBoolean,
     .use = FieldUse::accepted,
     .by_default = true,
     .help = "Results always have them."},
    {.name = "stream_options", .use = FieldUse::refused, .help = "the last event has the counts"},
    {.name = "samplers", .use = FieldUse::refused, .help = "the order is fixed; see sampler_order"},
    {.name = "response_fields", .use = FieldUse::refused, .help = "every field is returned"},
};

constexpr FieldDef<LlamaRequest> kPromptField[] = {
    {.name = "prompt",
     .type = kLlamaPrompt,
     .is_required = true,
     .help = "A string, token ids, or strings and token ids in an array; an array of strings, or "
             "of arrays, is several prompts (up to 128).",
     .read = read_llama_prompts},
};

using InfillFile = std::pair<std::string, std::string>;

constexpr FieldDef<InfillFile> kFileFields[] = {
    {.name = "filename",
     .type = kAnyText,
     .is_required = true,
     .help = "The file's name.",
     .read = [](const FieldValue& v, InfillFile& t) { t.first = v.text(); }},
    {.name = "text",
     .type = kAnyText,
     .is_required = true,
     .help = "The file's text.",
     .read = [](const FieldValue& v, InfillFile& t) { t.second = v.text(); }},
};

constexpr uint64_t kMaxFiles = 1024;
constexpr FieldType kFile = object_type(fields_of<kFileFields>);

void read_files(const FieldValue& value, LlamaRequest& target) {
  for (const FieldValue& item : value.items()) {
    RequestReader reader(item);
    reader.read<InfillFile>(kFileFields, target.completion.infill->files.emplace_back());
    reader.finish();
  }
}

constexpr FieldDef<LlamaRequest> kInfillFields[] = {
    {.name = "input_prefix",
     .type = kAnyText,
     .by_default = std::string_view(""),
     .help = "The text before the gap.",
     .read = [](const FieldValue& v, LlamaRequest& t) { t.completion.infill->prefix = v.text(); }},
    {.name = "input_suffix",
     .type = kAnyText,
     .by_default = std::string_view(""),
     .help = "The text after the gap.",
     .read = [](const FieldValue& v, LlamaRequest& t) { t.completion.infill->suffix = v.text(); }},
    {.name = "input_extra",
     .type = array_type(kFile, 0, kMaxFiles),
     .help = "Other files of the project, before the prefix.",
     .read = read_files},
    {.name = "prompt",
     .type = kAnyText,
     .by_default = std::string_view(""),
     .help = "How the text in the gap begins.",
     .read = [](const FieldValue& v,
                LlamaRequest& t) { t.completion.infill->beginning = v.text(); }},
};

// llama.cpp's two ways to ask for a random seed.
constexpr auto kRandomSeed = static_cast<uint64_t>(int64_t{-1});
constexpr uint64_t kRandomSeed32 = 0xFFFFFFFF;

LlamaRequest parse_llama(FieldTable<LlamaRequest> own_fields, LlamaRequest request,
                         const Json& body, const RequestTerms& terms) {
  CompletionRequest& completion = request.completion;
  completion.options.max_tokens = static_cast<int64_t>(kMaxOutputTokens);
  RequestReader reader(body, terms);
  reader.read<LlamaRequest>(own_fields, request);
  reader.read<LlamaRequest>(kLlamaFields, request);
  reader.read(common_fields(), completion.common);
  read_client_fields(FieldLevel::request, reader);
  reader.read(sampling_fields(), completion.options);
  reader.read(text_fields(), completion.options);
  reader.read(generation_fields(), completion.generation);
  reader.read(constraint_fields(), completion.generation.constraint);
  reader.finish();
  completion.options.constraint = completion.generation.constraint.spec;
  completion.options.constraint_name = completion.generation.constraint.field;
  completion.generation.has_negative_seed = has_negative_seed(body);
  check_penalty_fields(completion.generation, completion.options);
  check_logprob_fields(completion.options, completion.logprobs.has_value());
  std::optional<uint64_t>& seed = completion.options.seed;
  if (seed == kRandomSeed || seed == kRandomSeed32) {
    seed.reset();
    completion.generation.has_negative_seed = false;
  }
  request.returns_tokens = std::exchange(completion.generation.return_token_ids, true);
  completion.generation.timings = true;
  return request;
}

FieldList fields_with(FieldTable<LlamaRequest> own_fields) {
  FieldList list = list_fields<LlamaRequest>(own_fields);
  append_fields<LlamaRequest>(kLlamaFields, list);
  FieldList shared = list_fields(common_fields());
  append_client_fields(FieldLevel::request, shared);
  append_fields(text_fields(), shared);
  append_fields(generation_fields(), shared);
  append_fields(constraint_fields(), shared);
  append_fields(sampling_fields(), shared);
  for (const FieldInfo& field : shared) {
    const bool is_own = std::any_of(list.begin(), list.end(),
                                    [&](const FieldInfo& own) { return own.name == field.name; });
    if (!is_own) list.push_back(field);
  }
  return list;
}

}  // namespace

LlamaRequest parse_llama_request(const Json& body, const RequestTerms& terms) {
  return parse_llama(kPromptField, {}, body, terms);
}

LlamaRequest parse_infill_request(const Json& body, const RequestTerms& terms) {
  LlamaRequest request;
  request.completion.infill.emplace();
  return parse_llama(kInfillFields, std::move(request), body, terms);
}

FieldList llama_request_fields() { return fields_with(kPromptField); }
FieldList infill_request_fields() { return fields_with(kInfillFields); }

}  // namespace paceline
