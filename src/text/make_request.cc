#include "text/make_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "engine/engine.h"

namespace paceline {
namespace {

constexpr int64_t kDefaultMaxTokens = 256;
constexpr size_t kMaxStops = 4;
constexpr size_t kMaxStopBytes = 256;
constexpr size_t kMaxStopTokens = 128;
constexpr size_t kMaxBadWords = 128;
constexpr size_t kMaxBadWordBytes = 256;

// 53 bits: JSON readers that store numbers as doubles keep it exact.
uint64_t random_seed() {
  constexpr int kBitsDropped = 64 - 53;
  std::random_device device;
  return ((uint64_t{device()} << 32) | device()) >> kBitsDropped;
}

void check_stops(const GenerateOptions& options, bool has_tokenizer) {
  if (options.stop.size() > kMaxStops) {
    throw Error(ErrorCode::invalid,
                fmt::format("stop: {} strings, at most {}", options.stop.size(), kMaxStops));
  }
  for (size_t i = 0; i < options.stop.size(); ++i) {
    if (options.stop[i].size() > kMaxStopBytes) {
      throw Error(ErrorCode::invalid, fmt::format("stop[{}]: {} bytes, at most {}", i,
                                                  options.stop[i].size(), kMaxStopBytes));
    }
  }
  if (!options.stop.empty() && !has_tokenizer) {
    throw Error(ErrorCode::invalid, "stop: strings need a tokenizer, and the model has none");
  }
  if (options.stop_token_ids.size() > kMaxStopTokens) {
    throw Error(ErrorCode::invalid, fmt::format("stop_token_ids: {} ids, at most {}",
                                                options.stop_token_ids.size(), kMaxStopTokens));
  }
}

void check_bad_words(const GenerateOptions& options, bool has_tokenizer) {
  if (options.bad_words.size() > kMaxBadWords) {
    throw Error(ErrorCode::invalid, fmt::format("bad_words: {} strings, at most {}",
                                                options.bad_words.size(), kMaxBadWords));
  }
  for (size_t i = 0; i < options.bad_words.size(); ++i) {
    const size_t size = options.bad_words[i].size();
    if (size > 0 && size <= kMaxBadWordBytes) continue;
    throw Error(ErrorCode::invalid, fmt::format("bad_words[{}]: {} bytes, expected 1 to {}", i,
                                                size, kMaxBadWordBytes));
  }
  if (!options.bad_words.empty() && !has_tokenizer) {
    throw Error(ErrorCode::invalid, "bad_words: they need a tokenizer, and the model has none");
  }
}

// Normalisation may make a text shorter: NFC to a third, when it composes Hangul.
void check_length(const TextModel& model, std::string_view text) {
  constexpr size_t kShrinks = 4;
  const auto context = static_cast<size_t>(model.engine.limits().max_model_len);
  const size_t longest = kShrinks * model.longest_token_bytes * context;
  if (longest == 0 || text.size() <= longest) return;
  throw Error(ErrorCode::invalid,
              fmt::format("the prompt has {} bytes, which no {} tokens can hold (--max-model-len)",
                          text.size(), context));
}

}  // namespace

std::vector<TokenId> encode_prompt(const TextModel& model, const Prompt& prompt,
                                   bool add_special_tokens) {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
  if (model.tokenizer == nullptr) {
    throw Error(ErrorCode::not_found,
                fmt::format("{}: has no tokenizer.json, so prompts must be token ids (prompt_ids)",
                            model.name));
  }
  check_length(model, std::get<std::string>(prompt));
  return model.tokenizer->encode(std::get<std::string>(prompt),
                                 {.add_special = add_special_tokens});
}

std::string prompt_name(const Prompt& prompt, const std::string& asked) {
  if (!asked.empty()) return asked;
  return std::holds_alternative<std::string>(prompt) ? "prompt" : "prompt_ids";
}

// As vLLM's SamplingParams.update_from_tokenizer does it; what isn't in the model's vocabulary
// can't be drawn anyway.
std::vector<std::vector<TokenId>> encode_bad_words(const TextModel& model,
                                                   const GenerateOptions& options) {
  check_bad_words(options, model.tokenizer != nullptr);
  std::vector<std::vector<TokenId>> sequences;
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

SamplingOptions make_sampling(const TextModel& model, const GenerateOptions& options) {
  const GenerationConfig& defaults = model.generation;
  SamplingOptions sampling;
  sampling.temperature = options.temperature.value_or(defaults.temperature.value_or(1.0f));
  sampling.top_p = options.top_p.value_or(defaults.top_p.value_or(1.0f));
  sampling.top_k = options.top_k.value_or(defaults.top_k.value_or(0));
  sampling.min_p = options.min_p.value_or(defaults.min_p.value_or(0.0f));
  sampling.repetition_penalty =
      options.repetition_penalty.value_or(defaults.repetition_penalty.value_or(1.0f));
  sampling.frequency_penalty = options.frequency_penalty;
  sampling.presence_penalty = options.presence_penalty;
  sampling.logit_bias = options.logit_bias;
  sampling.order = options.mlx_sampler_order ? SamplerOrder::mlx : SamplerOrder::standard;
  sampling.seed = options.seed ? *options.seed : random_seed();
  sampling.num_top_logprobs = options.logprobs.value_or(0);
  sampling.logprob_token_ids = options.logprob_token_ids;
  return sampling;
}

GenerateRequest make_request(const TextModel& model, const Prompt& prompt,
                             const GenerateOptions& options) {
  check_stops(options, model.tokenizer != nullptr);
  std::vector<TokenId> ids = encode_prompt(model, prompt, options.add_special_tokens);
  const int64_t surplus =
      std::ssize(ids) - options.truncate_prompt_tokens.value_or(std::ssize(ids));
  if (surplus > 0) ids.erase(ids.begin(), ids.begin() + surplus);
  return {.prompt = std::move(ids),
          .prompt_name = prompt_name(prompt, options.prompt_name),
          .max_tokens = options.max_tokens.value_or(
              model.generation.max_new_tokens.value_or(kDefaultMaxTokens)),
          .sampling = make_sampling(model, options),
          .allowed_token_ids = options.allowed_token_ids,
          .banned_sequences = encode_bad_words(model, options),
          .eos_tokens = model.generation.eos_tokens,
          .stop_token_ids = options.stop_token_ids,
          .stop_strings = options.stop,
          .includes_stop = options.include_stop_in_output,
          .min_tokens = options.min_tokens,
          .ignore_eos = options.ignore_eos,
          .specials = options.skip_special_tokens ? SpecialTokens::hidden : SpecialTokens::shown,
          .want_logprobs = options.logprobs.has_value(),
          .score_from = options.prompt_logprobs ? std::optional<int64_t>(0) : std::nullopt,
          .priority = options.priority,
          .prefix = {.scope = prefix_scope(model, options)},
          .cancelled = options.cancelled};
}

GenerateRequest make_score_request(const TextModel& model, const Prompt& prompt,
                                   const ScoreOptions& options) {
  GenerateRequest request{.prompt = encode_prompt(model, prompt, options.add_special_tokens),
                          .prompt_name = prompt_name(prompt, options.prompt_name),
                          .max_tokens = 0,
                          .sampling = {.num_top_logprobs = options.num_top_logprobs},
                          .score_from = 0,
                          .prefix = {.write = PrefixUse::Write::none},
                          .cancelled = options.cancelled};
  return request;
}

PrefixScope prefix_scope(const TextModel& model, const GenerateOptions& options) {
  if (options.cache_salt.empty()) return {};
  std::vector<uint64_t> words = {options.cache_salt.size()};
  for (size_t i = 0; i < options.cache_salt.size(); ++i) {
    if (i % sizeof(uint64_t) == 0) words.push_back(0);
    words.back() = (words.back() << 8) | static_cast<uint8_t>(options.cache_salt[i]);
  }
  return {.salt = siphash128(model.salt_key, words)};
}

}  // namespace paceline
