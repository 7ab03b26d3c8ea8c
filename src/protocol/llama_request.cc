#include "protocol/llama_request.h"

#include <algorithm>
#include <utility>

#include "protocol/request_reader.h"

namespace paceline {
namespace {

constexpr FieldType kPiece = one_of_type<kAnyText, kTokenId>("a string or a token id");
constexpr FieldType kPieces = array_type(kPiece, 1, kMaxListedTokens);
constexpr FieldType kPromptItem =
    one_of_type<kAnyText, kTokenId, kPieces>("a string, a token id, or an array of them");
constexpr FieldType kLlamaPromptKinds[] = {kAnyText, array_type(kPromptItem, 1, kMaxListedTokens)};
constexpr FieldType kLlamaPrompt = one_of_type(
    kLlamaPromptKinds, "a string, an array of strings and token ids, or an array of such prompts");

constexpr FieldType kAnyTexts = array_type(kAnyText, 0, kMaxListedTokens);
constexpr int64_t kUntilTheContextEnds = -2;  // and -1
constexpr FieldType kNumPredicted = integer_type(kUntilTheContextEnds, kMaxOutputTokens);

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
    target.mixed_prompts = {read_pieces(value)};
    return;
  }
  const std::vector<FieldValue> items = value.items();
  if (items.size() > kMaxPrompts) value.refuse("at most 128 prompts");
  for (const FieldValue& item : items) {
    if (item.json().is_number()) item.refuse("a string or an array, as the other prompts are");
    target.mixed_prompts.push_back(read_pieces(item));
  }
}

void read_num_predicted(const FieldValue& value, LlamaRequest& target) {
  const int64_t count = value.integer();
  target.options.max_tokens = count < 0 ? static_cast<int64_t>(kMaxOutputTokens) : count;
}

void read_num_probs(const FieldValue& value, LlamaRequest& target) {
  target.as_probabilities = value.small_integer() > 0;
  if (target.as_probabilities) target.logprobs = value.small_integer();
}

constexpr FieldDef<LlamaRequest> kLlamaFields[] = {
    field("n_predict", kNumPredicted,
          "Stop after this many tokens; -1 or -2: when the context is full.", {.by_default = -1},
          read_num_predicted),
    field("max_tokens", kNumPredicted, "OpenAI's name of it.", {.alias_of = "n_predict"},
          read_num_predicted),
    field("n_cmpl", kNumChoices, "llama.cpp's newer name of it.", {.alias_of = "n"},
          [](const FieldValue& v, LlamaRequest& t) { t.generation.n = v.small_integer(); }),
    field("n_probs", kNumTopLogprobs,
          "Report each token's log-probability and this many alternatives; 0: none.",
          {.by_default = 0}, read_num_probs),
    field("logprobs", kNumTopLogprobs, "OpenAI's name of it.", {.alias_of = "n_probs"},
          read_num_probs),
    field("add_special_tokens", kBoolean,
          "Begin a prompt that begins with text with the special tokens (BOS) of the tokenizer.",
          kOn,
          [](const FieldValue& v, LlamaRequest& t) { t.options.add_special_tokens = v.boolean(); }),
    ignored("n_keep", kAnyNumber,
            "No token is ever discarded: the text ends when the context is full."),
    ignored("n_discard", kAnyNumber, "No token is ever discarded."),
    ignored("n_cache_reuse", kAnyNumber, "Cached prompts are shared from their beginning only."),
    ignored("t_max_predict_ms", kAnyNumber,
            "An answer never depends on the time it takes; limit n_predict instead."),
    ignored("t_max_prompt_ms", kAnyNumber, "An answer never depends on the time it takes."),
    ignored("timings_per_token", kBoolean, "Timings come with the end of the text."),
    ignored("sse_ping_interval", kAnyNumber, "A silent stream sends a comment every 15 s."),
    field("typ_p", number_type({0, 1, true}), "llama.cpp's older name of it.",
          {.alias_of = "typical_p"},
          [](const FieldValue& v, LlamaRequest& t) { t.options.typical_p = v.number(); }),
    field("tfs_z", kOnlyOne, "Only 1 (off).", {.by_default = 1.0}),
    field("dynatemp_range", kOnlyZero, "Only 0 (off).", {.by_default = 0.0}),
    ignored("dynatemp_exponent", kAnyNumber, "Of dynatemp_range."),
    field("mirostat", kOnlyZero, "Only 0 (off).", {.by_default = 0.0}),
    ignored("mirostat_tau", kAnyNumber, "Of mirostat."),
    ignored("mirostat_eta", kAnyNumber, "Of mirostat."),
    field("dry_multiplier", kOnlyZero, "Only 0 (off).", {.by_default = 0.0}),
    ignored("dry_base", kAnyNumber, "Of dry_multiplier."),
    ignored("dry_allowed_length", kAnyNumber, "Of dry_multiplier."),
    ignored("dry_penalty_last_n", kAnyNumber, "Of dry_multiplier."),
    ignored("dry_sequence_breakers", kAnyTexts, "Of dry_multiplier."),
    field("xtc_probability", kOnlyZero, "Only 0 (off).", {.by_default = 0.0}),
    ignored("xtc_threshold", kAnyNumber, "Of xtc_probability."),
    field("min_keep", kOnlyZero, "Only 0.", {.by_default = 0.0}),
    field("n_indent", kOnlyZero, "Only 0.", {.by_default = 0.0}),
    field("post_sampling_probs", kOnlyFalse, "Only false: log-probabilities are the model's own.",
          kOff),
    field("return_progress", kOnlyFalse, "Only false.", kOff),
    field("lora", kNoItems, "Only an empty array: model chooses an adapter."),
    field("image_data", kNoItems, "Only an empty array."),
    ignored("timings", kBoolean, "Results always have them.", kOn),
    refused("stream_options", "the last event has the counts"),
    refused("samplers", "the order is fixed; see sampler_order"),
    refused("response_fields", "every field is returned"),
};

constexpr FieldDef<LlamaRequest> kPromptField[] = {
    required("prompt", kLlamaPrompt,
             "A string, token ids, or strings and token ids in an array; an array of strings, or "
             "of arrays, is several prompts (up to 128).",
             read_llama_prompts),
};

using InfillFile = std::pair<std::string, std::string>;

constexpr FieldDef<InfillFile> kFileFields[] = {
    required("filename", kAnyText, "The file's name.", store<&InfillFile::first>),
    required("text", kAnyText, "The file's text.", store<&InfillFile::second>),
};

constexpr uint64_t kMaxFiles = 1024;
constexpr FieldType kFile = object_type(fields_of<kFileFields>);

void read_files(const FieldValue& value, LlamaRequest& target) {
  for (const FieldValue& item : value.items()) {
    target.infill->files.push_back(read_object<kFileFields>(item));
  }
}

constexpr FieldDef<LlamaRequest> kInfillFields[] = {
    field("input_prefix", kAnyText, "The text before the gap.", {.by_default = ""},
          [](const FieldValue& v, LlamaRequest& t) { t.infill->prefix = v.text(); }),
    field("input_suffix", kAnyText, "The text after the gap.", {.by_default = ""},
          [](const FieldValue& v, LlamaRequest& t) { t.infill->suffix = v.text(); }),
    field("input_extra", array_type(kFile, 0, kMaxFiles),
          "Other files of the project, before the prefix.", read_files),
    field("prompt", kAnyText, "How the text in the gap begins.", {.by_default = ""},
          [](const FieldValue& v, LlamaRequest& t) { t.infill->beginning = v.text(); }),
};

// llama.cpp's two ways to ask for a random seed.
constexpr auto kRandomSeed = static_cast<uint64_t>(int64_t{-1});
constexpr uint64_t kRandomSeed32 = 0xFFFFFFFF;

LlamaRequest parse_llama(FieldTable<LlamaRequest> own_fields, LlamaRequest request,
                         const Json& body, const RequestTerms& terms) {
  request.options.max_tokens = static_cast<int64_t>(kMaxOutputTokens);
  RequestReader reader(body, terms);
  reader.read<LlamaRequest>(own_fields, request);
  reader.read<LlamaRequest>(kLlamaFields, request);
  read_generation(reader, request);
  reader.finish();
  finish_generation(body, request);
  check_penalty_fields(request.generation, request.options);
  check_logprob_fields(request.options, request.logprobs.has_value());
  std::optional<uint64_t>& seed = request.options.seed;
  if (seed == kRandomSeed || seed == kRandomSeed32) {
    seed.reset();
    request.generation.has_negative_seed = false;
  }
  request.returns_tokens = std::exchange(request.generation.return_token_ids, true);
  request.generation.timings = true;
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
  append_missing_fields(shared, list);
  return list;
}

}  // namespace

LlamaRequest parse_llama_request(const Json& body, const RequestTerms& terms) {
  return parse_llama(kPromptField, {}, body, terms);
}

LlamaRequest parse_infill_request(const Json& body, const RequestTerms& terms) {
  LlamaRequest request;
  request.infill.emplace();
  return parse_llama(kInfillFields, std::move(request), body, terms);
}

FieldList llama_request_fields() { return fields_with(kPromptField); }
FieldList infill_request_fields() { return fields_with(kInfillFields); }

}  // namespace paceline
