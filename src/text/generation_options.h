// The generation options, each defined once. Command line, lines of JSON, HTTP requests with their
// schema and documentation, the page and the defaults in a model's files are made from this table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/number_range.h"
#include "paceline/options.h"
#include "sampling/sampling_options.h"

namespace paceline {

enum class GenerationGroup : uint8_t {
  sampling,     // for drawing a token; classification has these too
  restriction,  // which tokens may be drawn
  stopping,
  prompt,
  output,
};

// Limits of a list, or of one text.
struct ListLimits {
  uint64_t min_items = 0;
  uint64_t max_items = std::numeric_limits<uint64_t>::max();
  uint64_t max_bytes =
      std::numeric_limits<uint64_t>::max();  // of each text, none of which is empty
};

// The option's name in a model's files; empty: they can't set it.
struct FileKeys {
  std::string_view generation_config = {};  // in generation_config.json
  std::string_view gguf = {};               // in the metadata of a GGUF file
};

// The interface that reads the option without this table, because it has another meaning there.
enum class OwnReader : uint8_t { none, requests, command_line };

using LogitBias = std::vector<std::pair<int32_t, float>>;

// The member of GenerateOptions that an option sets; its type is the option's.
using GenerationMember = std::variant<
    bool GenerateOptions::*, int64_t GenerateOptions::*, std::optional<int32_t> GenerateOptions::*,
    std::optional<int64_t> GenerateOptions::*, std::optional<uint64_t> GenerateOptions::*,
    float GenerateOptions::*, std::optional<float> GenerateOptions::*,
    std::vector<std::string> GenerateOptions::*, std::vector<int32_t> GenerateOptions::*,
    LogitBias GenerateOptions::*>;

enum class GenerationKind : uint8_t {
  flag,
  choice,   // one of two words; the second one sets the flag
  integer,  // within the range
  seed,     // 64 bits
  number,   // within the range
  texts,
  token_ids,
  logit_bias,  // each bias within the range, or -inf
};

struct GenerationOption {
  std::string_view name;                // "min_p": the field, --min-p, PACELINE_MIN_P
  std::string_view other_name = {};     // an alias, in requests and as a flag
  std::string_view flags = {};          // further flags, separated by blanks
  std::string_view placeholder = {};    // what the help calls the value
  std::string_view help;                // one sentence
  std::string_view default_words = {};  // for the help, without the model's defaults
  std::string_view bare_value = {};     // not empty: the value of the flag without one
  GenerationGroup group = GenerationGroup::sampling;
  OwnReader own_reader = OwnReader::none;
  NumberRange range = {};
  ListLimits list = {};
  std::string_view choices = {};  // the two words, separated by a blank
  FileKeys file_keys = {};
  GenerationMember member;
};

constexpr NumberRange sampling_range(std::string_view name) {
  return find_sampling_number(name)->range;
}

constexpr int64_t kMaxOutputTokens = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxPromptTokens = 1 << 19;  // beyond any context
constexpr int64_t kDefaultMaxTokens = 256;

inline constexpr GenerationOption kGenerationOptions[] = {
    {.name = "temperature",
     .flags = "--temp",
     .placeholder = "T",
     .help = "Randomness of the draw; 0 always takes the likeliest token.",
     .default_words = "1",
     .range = sampling_range("temperature"),
     .file_keys = {"temperature", "general.sampling.temp"},
     .member = &GenerateOptions::temperature},
    {.name = "top_p",
     .placeholder = "P",
     .help = "Draw from the likeliest tokens that together have this probability.",
     .default_words = "1 (off)",
     .range = sampling_range("top_p"),
     .file_keys = {"top_p", "general.sampling.top_p"},
     .member = &GenerateOptions::top_p},
    {.name = "top_k",
     .placeholder = "K",
     .help = "Draw from this many of the likeliest tokens; 0 or -1: from all.",
     .default_words = "0 (off)",
     .range = sampling_range("top_k"),
     .file_keys = {"top_k", "general.sampling.top_k"},
     .member = &GenerateOptions::top_k},
    {.name = "min_p",
     .placeholder = "P",
     .help = "Drop tokens less likely than this times the likeliest.",
     .default_words = "0 (off)",
     .range = sampling_range("min_p"),
     .file_keys = {"min_p", "general.sampling.min_p"},
     .member = &GenerateOptions::min_p},
    {.name = "typical_p",
     .placeholder = "P",
     .help =
         "Draw from the tokens closest to the expected information content that together have this "
         "probability.",
     .default_words = "1 (off)",
     .range = sampling_range("typical_p"),
     .file_keys = {.generation_config = "typical_p"},
     .member = &GenerateOptions::typical_p},
    {.name = "top_n_sigma",
     .placeholder = "N",
     .help =
         "Drop tokens whose logit is more than this many standard deviations below the largest.",
     .default_words = "0 (off)",
     .range = sampling_range("top_n_sigma"),
     .member = &GenerateOptions::top_n_sigma},
    {.name = "repetition_penalty",
     .other_name = "repeat_penalty",
     .placeholder = "R",
     .help = "Make every token of prompt and output less likely (above 1) or more (below).",
     .default_words = "1 (off)",
     .range = sampling_range("repetition_penalty"),
     .file_keys = {"repetition_penalty", "general.sampling.penalty_repeat"},
     .member = &GenerateOptions::repetition_penalty},
    {.name = "frequency_penalty",
     .placeholder = "X",
     .help = "Subtract this from a token's logit for each time it is in the output.",
     .default_words = "0",
     .range = sampling_range("frequency_penalty"),
     .member = &GenerateOptions::frequency_penalty},
    {.name = "presence_penalty",
     .placeholder = "X",
     .help = "Subtract this from a token's logit when it is in the output at all.",
     .default_words = "0",
     .range = sampling_range("presence_penalty"),
     .member = &GenerateOptions::presence_penalty},
    {.name = "logit_bias",
     .placeholder = "ID=X",
     .help =
         "Add X to the logit of token ID; in requests {\"ID\": X} or [[ID, X]], false for never.",
     .range = {-100, 100},
     .list = {.max_items = kMaxBiasEntries},
     .member = &GenerateOptions::logit_bias},
    {.name = "sampler_order",
     .placeholder = "ORDER",
     .help = "Order of the filters: default (temperature, top-n-sigma, min-p, top-k, top-p, "
             "typical-p) or mlx (top-n-sigma, top-p, min-p, top-k, typical-p, temperature).",
     .default_words = "default",
     .choices = "default mlx",
     .member = &GenerateOptions::mlx_sampler_order},
    // On the command line it also seeds dummy weights.
    {.name = "seed",
     .placeholder = "N",
     .help = "The same seed gives the same answer; a random one is reported in the answer.",
     .default_words = "random",
     .own_reader = OwnReader::command_line,
     .member = &GenerateOptions::seed},

    {.name = "allowed_token_ids",
     .placeholder = "IDS",
     .help = "Draw only these tokens; the end of sequence too only if it is one of them.",
     .group = GenerationGroup::restriction,
     .list = {.min_items = 1, .max_items = kMaxPromptTokens},
     .member = &GenerateOptions::allowed_token_ids},
    {.name = "bad_words",
     .placeholder = "TEXT",
     .help = "Never draw the token that would complete this text, written alone or after a space.",
     .group = GenerationGroup::restriction,
     .list = {.max_items = 128, .max_bytes = 256},
     .member = &GenerateOptions::bad_words},

    // Requests have another default, and chats call it max_completion_tokens.
    {.name = "max_tokens",
     .flags = "-n --n-predict",
     .placeholder = "N",
     .help = "Stop after this many tokens, or when the context is full.",
     .default_words = "256; chat: to the end of the context",
     .group = GenerationGroup::stopping,
     .own_reader = OwnReader::requests,
     .range = {0, kMaxOutputTokens},
     .file_keys = {.generation_config = "max_new_tokens"},
     .member = &GenerateOptions::max_tokens},
    {.name = "min_tokens",
     .placeholder = "N",
     .help = "Draw neither the end of sequence nor stop_token_ids before this many tokens.",
     .default_words = "0",
     .group = GenerationGroup::stopping,
     .range = {0, kMaxOutputTokens},
     .file_keys = {.generation_config = "min_new_tokens"},
     .member = &GenerateOptions::min_tokens},
    {.name = "stop",
     .flags = "-r --reverse-prompt",
     .placeholder = "TEXT",
     .help = "Stop before this text would appear; at most 128 texts of 256 bytes.",
     .group = GenerationGroup::stopping,
     .list = {.max_items = 128, .max_bytes = 256},
     .member = &GenerateOptions::stop},
    {.name = "include_stop_str_in_output",
     .help = "End the text after the stop string instead of before it.",
     .group = GenerationGroup::stopping,
     .member = &GenerateOptions::include_stop_in_output},
    {.name = "stop_token_ids",
     .placeholder = "IDS",
     .help = "Stop at any of these token ids.",
     .group = GenerationGroup::stopping,
     .list = {.max_items = 128},
     .member = &GenerateOptions::stop_token_ids},
    {.name = "ignore_eos",
     .help = "Go on past the model's end-of-sequence tokens.",
     .group = GenerationGroup::stopping,
     .member = &GenerateOptions::ignore_eos},

    {.name = "truncate_prompt_tokens",
     .placeholder = "N",
     .help = "Take only this many tokens of the prompt, its last ones.",
     .default_words = "all",
     .group = GenerationGroup::prompt,
     .range = {1, kMaxPromptTokens},
     .member = &GenerateOptions::truncate_prompt_tokens},
    {.name = "speculation",
     .placeholder = "BOOL",
     .help = "Draft tokens for this request where the model has a drafter; false: never.",
     .default_words = "true",
     .group = GenerationGroup::output,
     .member = &GenerateOptions::speculation},
    {.name = "skip_special_tokens",
     .placeholder = "BOOL",
     .help = "Leave special tokens out of the text; false: write them as they are spelled.",
     .default_words = "true",
     .group = GenerationGroup::output,
     .member = &GenerateOptions::skip_special_tokens},
    // In chats it is a flag, with top_logprobs beside it.
    {.name = "logprobs",
     .placeholder = "N",
     .help = "Report each token's log-probability and this many alternatives.",
     .default_words = "off; shown by --jsonl",
     .bare_value = "0",
     .group = GenerationGroup::output,
     .own_reader = OwnReader::requests,
     .range = {0, kMaxTopLogprobs},
     .member = &GenerateOptions::logprobs},
    {.name = "logprob_token_ids",
     .placeholder = "IDS",
     .help = "With logprobs, report these tokens beside each one instead of the likeliest.",
     .group = GenerationGroup::output,
     .list = {.max_items = 128},
     .member = &GenerateOptions::logprob_token_ids},
};

constexpr size_t kNumGenerationOptions = std::size(kGenerationOptions);

// An unknown name doesn't compile.
consteval const GenerationOption& generation_option(std::string_view name) {
  return *std::find_if(std::begin(kGenerationOptions), std::end(kGenerationOptions),
                       [&](const GenerationOption& option) { return option.name == name; });
}

constexpr GenerationKind kind_of(const GenerationOption& option) {
  constexpr GenerationKind kKinds[] = {GenerationKind::flag,      GenerationKind::integer,
                                       GenerationKind::integer,   GenerationKind::integer,
                                       GenerationKind::seed,      GenerationKind::number,
                                       GenerationKind::number,    GenerationKind::texts,
                                       GenerationKind::token_ids, GenerationKind::logit_bias};
  static_assert(std::size(kKinds) == std::variant_size_v<GenerationMember>);
  return option.choices.empty() ? kKinds[option.member.index()] : GenerationKind::choice;
}

// A value of an option's kind: flag, integer, seed, number, choice, ...
using GenerationValue = std::variant<bool, int64_t, uint64_t, double, std::string,
                                     std::vector<std::string>, std::vector<int32_t>, LogitBias>;

// Sets an option to a value of its kind. Throws Error invalid "min_p: found 2, expected a number
// from 0 to 1" for a value out of range.
void set_option(GenerateOptions& options, const GenerationOption& option,
                const GenerationValue& value);

// Throws like set_option for any option out of range, and for texts without a tokenizer. Leaves the
// sampler's numbers to check_sampling_options().
void check_generation_options(const GenerateOptions& options, bool has_tokenizer);

// What an unset option means, in words: "the model's, else 0 (off)".
std::string unset_words(const GenerationOption& option);

// Whether it has another value than in a default GenerateOptions.
bool is_set(const GenerateOptions& options, const GenerationOption& option);

// Sets unset numbers to the values of `defaults`.
void take_defaults(GenerateOptions& options, const GenerateOptions& defaults);

// The sampler's options; unset ones have their own defaults, and the seed is random.
SamplingOptions sampling_options(const GenerateOptions& options);

}  // namespace paceline
