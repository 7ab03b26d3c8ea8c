#include "text/make_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/request_error.h"
#include "engine/adapter_set.h"
#include "engine/context_error.h"
#include "engine/engine.h"
#include "grammar/constraint_cache.h"
#include "text/generation_options.h"

namespace paceline {
namespace {

std::vector<TokenId> encode_prediction(const TextModel& model, std::string_view text) {
  if (text.empty()) return {};
  if (model.tokenizer == nullptr) {
    throw RequestError(
        "prediction", ErrorReason::not_found,
        fmt::format("prediction: {} has no tokenizer.json, which a text needs", model.name),
        ErrorCode::not_found);
  }
  check_text_length(model, text.size(), "prediction");
  return model.tokenizer->encode(text);
}

// Of min_new_tokens and min_length.
int64_t least_tokens(const GenerateOptions& options, const TextModel& model,
                     int64_t prompt_tokens) {
  return std::max({options.min_tokens.value_or(0),
                   model.generation.min_length.value_or(0) - prompt_tokens, int64_t{0}});
}

// The model's own end an output where its end tokens do.
std::vector<std::string> stop_strings(const TextModel& model, const GenerateOptions& options) {
  std::vector<std::string> strings = options.stop;
  if (options.ignore_eos || model.tokenizer == nullptr) return strings;
  const auto& own = model.generation.stop_strings;
  strings.insert(strings.end(), own.begin(), own.end());
  return strings;
}

std::string constraint_name(const GenerateOptions& options) {
  return options.constraint_name.empty() ? "constraint" : options.constraint_name;
}

}  // namespace

// Normalisation may shorten a text: NFC composes Hangul to a third.
void check_text_length(const TextModel& model, size_t num_bytes, std::string_view name) {
  constexpr size_t kShrinks = 4;
  const auto context = static_cast<size_t>(model.engine.limits().max_model_len);
  const size_t longest = kShrinks * model.longest_token_bytes * context;
  if (longest == 0 || num_bytes <= longest) return;
  throw context_error(ErrorCode::invalid, {.field = std::string(name),
                                           .capacity = static_cast<int64_t>(context),
                                           .prompt_tokens = {},
                                           .limit = "--max-model-len"});
}

RequestError constraint_error(const std::string& field, const Error& error) {
  ErrorReason reason = ErrorReason::invalid_value;
  if (error.code() == ErrorCode::unsupported) reason = ErrorReason::unsupported_parameter;
  if (error.code() == ErrorCode::exhausted) reason = ErrorReason::limit_exceeded;
  return {field, reason, fmt::format("{}: {}", field, error.what()), error.code()};
}

std::shared_ptr<Constraint> find_constraint(const TextModel& model,
                                            const GenerateOptions& options) {
  if (!options.constraint) return nullptr;
  const std::string name = constraint_name(options);
  if (model.constraints == nullptr) {
    throw RequestError(name, ErrorReason::not_found,
                       fmt::format("{}: {} has no tokenizer.json, so its text can't be constrained",
                                   name, model.name),
                       ErrorCode::not_found);
  }
  try {
    return model.constraints->get(*options.constraint);
  } catch (const Error& error) {
    throw constraint_error(name, error);
  }
}

std::shared_ptr<const LoadedAdapter> find_adapter(const TextModel& model, const std::string& name) {
  if (name.empty()) return nullptr;
  if (model.adapters != nullptr) {
    if (auto adapter = model.adapters->find(name)) return adapter;
  }
  std::vector<std::string> names;
  if (model.adapters != nullptr) names = model.adapters->names();
  throw RequestError("model", ErrorReason::model_not_found,
                     names.empty()
                         ? fmt::format("lora: {} is no adapter; --lora {}=DIR would load it",
                                       json_quote(name), name)
                         : fmt::format("lora: {} is no adapter, expected {}", json_quote(name),
                                       fmt::join(names, ", ")),
                     ErrorCode::not_found);
}

namespace {

const Tokenizer& tokenizer_of(const TextModel& model) {
  if (model.tokenizer == nullptr) {
    throw RequestError(
        "", ErrorReason::feature_disabled,
        fmt::format("{}: has no tokenizer.json, so prompts must be token ids (prompt_ids)",
                    model.name),
        ErrorCode::not_found);
  }
  return *model.tokenizer;
}

const Tokenizer& tokenizer_for(const TextModel& model, std::string_view text,
                               const std::string& name) {
  const Tokenizer& tokenizer = tokenizer_of(model);
  check_text_length(model, text.size(), name);
  return tokenizer;
}

}  // namespace

std::vector<TokenId> encode_prompt(const TextModel& model, const Prompt& prompt,
                                   const std::string& name, EncodeOptions options) {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
  const std::string& text = std::get<std::string>(prompt);
  return tokenizer_for(model, text, name).encode(text, options);
}

PairEncoding encode_text_pair(const TextModel& model, const std::string& first,
                              const std::string& second, const std::string& name,
                              std::optional<PairLimit> limit) {
  if (!limit) {
    check_text_length(model, first.size(), name);
    check_text_length(model, second.size(), name);
  }
  return tokenizer_of(model).encode_pair(first, second, {.add_special = true}, limit);
}

std::string prompt_name(const Prompt& prompt, const std::string& asked) {
  if (!asked.empty()) return asked;
  return std::holds_alternative<std::string>(prompt) ? "prompt" : "prompt_ids";
}

// Like SamplingParams.update_from_tokenizer of vLLM. Tokens beyond the model's vocabulary can't be
// drawn anyway.
std::vector<std::vector<TokenId>> banned_sequences(const TextModel& model,
                                                   const GenerateOptions& options) {
  std::vector<std::vector<TokenId>> sequences = model.generation.banned;
  for (const std::string& word : options.bad_words) {
    const std::string bare = word.substr(std::min(word.find_first_not_of(' '), word.size()));
    for (const std::string& text : {bare, " " + bare}) {
      std::vector<TokenId> ids = model.tokenizer->encode(text);
      const bool is_known = std::find(sequences.begin(), sequences.end(), ids) != sequences.end();
      if (!ids.empty() && !is_known) sequences.push_back(std::move(ids));
    }
  }
  return sequences;
}

int64_t default_max_tokens(const TextModel& model, int64_t prompt_tokens, int64_t usual) {
  const auto& longest = model.generation.max_length;
  if (!longest) return usual;
  if (*longest > prompt_tokens) return std::min(usual, *longest - prompt_tokens);
  throw invalid_field("max_tokens",
                      fmt::format("not set, and generation_config.json has max_length {} for "
                                  "prompt and answer together, but the prompt has {} tokens",
                                  *longest, prompt_tokens));
}

GenerateOptions complete_options(const TextModel& model, const GenerateOptions& options) {
  check_generation_options(options, model.tokenizer != nullptr);
  GenerateOptions complete = options;
  take_defaults(complete, model.generation.defaults);
  return complete;
}

GenerateRequest make_request(const TextModel& model, const Prompt& prompt,
                             const GenerateOptions& asked) {
  const GenerateOptions options = complete_options(model, asked);
  const std::string name = prompt_name(prompt, options.prompt_name);
  std::vector<TokenId> ids =
      encode_prompt(model, prompt, name, {.add_special = options.add_special_tokens});
  const int64_t surplus =
      std::ssize(ids) - options.truncate_prompt_tokens.value_or(std::ssize(ids));
  if (surplus > 0) ids.erase(ids.begin(), ids.begin() + surplus);
  const int64_t max_tokens = options.max_tokens
                                 ? *options.max_tokens
                                 : default_max_tokens(model, std::ssize(ids), kDefaultMaxTokens);
  if (max_tokens > 0 && !model.generation.problem.empty()) {
    throw Error(ErrorCode::unsupported, model.generation.problem);
  }
  const int64_t min_tokens =
      asked.min_tokens ? *asked.min_tokens
                       : std::min(least_tokens(options, model, std::ssize(ids)), max_tokens);
  return {.prompt = std::move(ids),
          .prompt_name = name,
          .max_tokens = max_tokens,
          .sampling = sampling_options(options),
          .allowed_token_ids = options.allowed_token_ids,
          .banned_sequences = banned_sequences(model, options),
          .not_first = model.generation.not_first,
          .constraint = find_constraint(model, options),
          .constraint_name = constraint_name(options),
          .eos_tokens = model.generation.eos_tokens,
          .stop_token_ids = options.stop_token_ids,
          .stop_strings = stop_strings(model, options),
          .includes_stop = options.include_stop_in_output,
          .min_tokens = min_tokens,
          .ignore_eos = options.ignore_eos,
          .specials = options.skip_special_tokens ? SpecialTokens::hidden : SpecialTokens::shown,
          .want_logprobs = options.logprobs.has_value(),
          .speculation = options.speculation,
          .prediction = encode_prediction(model, options.prediction),
          .score_from = options.prompt_logprobs ? std::optional<int64_t>(0) : std::nullopt,
          .adapter = find_adapter(model, options.lora),
          .priority = options.priority,
          .prefix = {.scope = prefix_scope(model, options)},
          .cancelled = options.cancelled};
}

GenerateRequest make_score_request(const TextModel& model, const Prompt& prompt,
                                   const ScoreOptions& options) {
  const std::string name = prompt_name(prompt, options.prompt_name);
  GenerateRequest request{
      .prompt = encode_prompt(model, prompt, name, {.add_special = options.add_special_tokens}),
      .prompt_name = name,
      .max_tokens = 0,
      .sampling = {{.num_top_logprobs = options.num_top_logprobs}},
      .score_from = 0,
      .adapter = find_adapter(model, options.lora),
      .prefix = {.write = PrefixUse::Write::none},
      .cancelled = options.cancelled};
  return request;
}

PrefixScope prefix_scope(const TextModel& model, const GenerateOptions& options) {
  return prefix_scope(model, options.cache_salt);
}

PrefixScope prefix_scope(const TextModel& model, const std::string& cache_salt) {
  if (cache_salt.empty()) return {};
  std::vector<uint64_t> words = {cache_salt.size()};
  for (size_t i = 0; i < cache_salt.size(); ++i) {
    if (i % sizeof(uint64_t) == 0) words.push_back(0);
    words.back() = (words.back() << 8) | static_cast<uint8_t>(cache_salt[i]);
  }
  return {.salt = siphash128(model.salt_key, words)};
}

}  // namespace paceline
