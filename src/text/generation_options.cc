#include "text/generation_options.h"

#include <fmt/format.h>

#include <random>
#include <type_traits>

#include "base/request_error.h"

namespace paceline {
namespace {

constexpr const GenerationOption& option_of(const SamplingNumber& number) {
  return *std::find_if(std::begin(kGenerationOptions), std::end(kGenerationOptions),
                       [&](const GenerationOption& option) { return option.name == number.name; });
}

// A number of the sampler without a row in kGenerationOptions doesn't compile.
static_assert(std::all_of(std::begin(kSamplingNumbers), std::end(kSamplingNumbers),
                          [](const SamplingNumber& number) {
                            return option_of(number).name == number.name;
                          }));

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

// Integers and numbers, which may be unset.
template <class T>
constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
template <class T>
constexpr bool kIsNumber<std::optional<T>> = kIsNumber<T> && !std::is_same_v<T, uint64_t>;

[[noreturn]] void refuse(const GenerationOption& option, std::string_view found,
                         std::string_view expected) {
  throw invalid_field(option.name, fmt::format("found {}, expected {}", found, expected));
}

template <class T>
void check_value(const GenerationOption& option, T value) {
  if constexpr (IsOptional<T>::value) {
    if (value) check_value(option, *value);
  } else if (!option.range.contains(value)) {
    refuse(option, fmt::format("{}", value),
           range_words(std::is_integral_v<T> ? "an integer" : "a number", option.range));
  }
}

void check_size(const GenerationOption& option, size_t num_items, std::string_view noun) {
  if (num_items > 0 && num_items < option.list.min_items) {
    throw invalid_field(option.name, fmt::format("{} {}, expected at least {}", num_items, noun,
                                                 option.list.min_items));
  }
  if (num_items <= option.list.max_items) return;
  throw invalid_field(option.name, fmt::format("{} {}, expected at most {}", num_items, noun,
                                               option.list.max_items));
}

void check_value(const GenerationOption& option, const std::vector<std::string>& texts) {
  check_size(option, texts.size(), "strings");
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty() && texts[i].size() <= option.list.max_bytes) continue;
    const std::string place = fmt::format("{}[{}]", option.name, i);
    if (texts[i].empty()) throw invalid_field(place, "found \"\", expected some text");
    throw invalid_field(place, fmt::format("{} bytes, expected at most {}", texts[i].size(),
                                           option.list.max_bytes));
  }
}

void check_value(const GenerationOption& option, const std::vector<int32_t>& ids) {
  check_size(option, ids.size(), "ids");
}

void check_value(const GenerationOption& option, const LogitBias& entries) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  check_size(option, entries.size(), "entries");
  for (const auto& [id, bias] : entries) {
    if (bias == kNever || option.range.contains(bias)) continue;
    const std::string place = fmt::format("{}[{}]", option.name, id);
    throw invalid_field(
        place, fmt::format("found {}, expected {}", bias, range_words("a number", option.range)));
  }
}

void check_value(const GenerationOption&, bool) {}
void check_value(const GenerationOption&, const std::optional<uint64_t>&) {}

// The value that it is set to.
std::optional<double> number_in(const GenerateOptions& options, const GenerationOption& option) {
  return std::visit(
      [&](auto member) -> std::optional<double> {
        const auto& value = options.*member;
        using T = std::decay_t<decltype(value)>;
        if constexpr (!kIsNumber<T>) {
          return std::nullopt;
        } else if constexpr (IsOptional<T>::value) {
          return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
        } else {
          return static_cast<double>(value);
        }
      },
      option.member);
}

// 53 bits, so that readers of JSON with double numbers keep it exact.
uint64_t random_seed() {
  constexpr int kBitsDropped = 64 - 53;
  std::random_device device;
  return ((uint64_t{device()} << 32) | device()) >> kBitsDropped;
}

}  // namespace

void set_option(GenerateOptions& options, const GenerationOption& option,
                const GenerationValue& value) {
  const auto set_number = [&](auto& target, auto number) {
    check_value(option, number);
    using T = std::decay_t<decltype(target)>;
    if constexpr (IsOptional<T>::value) {
      target = static_cast<typename T::value_type>(number);
    } else {
      target = static_cast<T>(number);
    }
  };
  std::visit(
      [&](auto member) {
        auto& target = options.*member;
        using T = std::decay_t<decltype(target)>;
        if constexpr (std::is_same_v<T, bool>) {
          const auto* word = std::get_if<std::string>(&value);
          target = word == nullptr ? std::get<bool>(value) : option.choices.ends_with(" " + *word);
        } else if constexpr (std::is_same_v<T, std::optional<uint64_t>>) {
          target = std::get<uint64_t>(value);
        } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, std::optional<float>>) {
          set_number(target, std::get<double>(value));
        } else if constexpr (kIsNumber<T>) {
          set_number(target, std::get<int64_t>(value));
        } else {
          check_value(option, std::get<T>(value));
          target = std::get<T>(value);
        }
      },
      option.member);
}

void check_generation_options(const GenerateOptions& options, bool has_tokenizer) {
  for (const GenerationOption& option : kGenerationOptions) {
    if (find_sampling_number(option.name) != nullptr) continue;
    std::visit([&](auto member) { check_value(option, options.*member); }, option.member);
    const auto* texts = std::get_if<std::vector<std::string> GenerateOptions::*>(&option.member);
    if (texts == nullptr || (options.*(*texts)).empty() || has_tokenizer) continue;
    throw invalid_field(option.name, "strings need a tokenizer, and the model has none");
  }
}

std::string unset_words(const GenerationOption& option) {
  const bool is_in_files = !option.file_keys.generation_config.empty();
  return (is_in_files ? "the model's, else " : "") + std::string(option.default_words);
}

bool is_set(const GenerateOptions& options, const GenerationOption& option) {
  return std::visit([&](auto member) { return options.*member != GenerateOptions{}.*member; },
                    option.member);
}

void take_defaults(GenerateOptions& options, const GenerateOptions& defaults) {
  for (const GenerationOption& option : kGenerationOptions) {
    std::visit(
        [&](auto member) {
          auto& value = options.*member;
          if constexpr (IsOptional<std::decay_t<decltype(value)>>::value) {
            if (!value) value = defaults.*member;
          }
        },
        option.member);
  }
}

SamplingOptions sampling_options(const GenerateOptions& options) {
  SamplingOptions sampling;
  for (const SamplingNumber& number : kSamplingNumbers) {
    const auto value = number_in(options, option_of(number));
    if (!value) continue;
    std::visit(
        [&](auto member) {
          using T = std::decay_t<decltype(sampling.*member)>;
          sampling.*member = static_cast<T>(*value);
        },
        number.member);
  }
  sampling.logit_bias = options.logit_bias;
  sampling.order = options.mlx_sampler_order ? SamplerOrder::mlx : SamplerOrder::standard;
  sampling.seed = options.seed ? *options.seed : random_seed();
  sampling.num_top_logprobs = options.logprobs.value_or(0);
  sampling.logprob_token_ids = options.logprob_token_ids;
  return sampling;
}

}  // namespace paceline
