// The request fields for generation options, made from kGenerationOptions.
#include <charconv>
#include <limits>
#include <type_traits>
#include <utility>

#include "protocol/request_fields.h"

namespace paceline {
namespace {

// OpenAI's object of biases, and llama.cpp's two other ways to write them.
constexpr FieldType kBias = number_type(generation_option("logit_bias").range);
constexpr FieldType kNever = {.kind = FieldKind::boolean, .booleans = Booleans::only_false};
constexpr FieldType kBiasOrNever = one_of_type<kBias, kNever>({});
constexpr FieldType kBiasPair = {.kind = FieldKind::tuple,
                                 .min = 2,
                                 .max = 2,
                                 .parts = kPartsOf<kTokenId, kBiasOrNever>,
                                 .expected = "[token id, bias]"};
constexpr FieldType kBiasOfIds = {
    .kind = FieldKind::object, .max = kMaxBiasEntries, .item = &kBiasOrNever, .keys_are_ids = true};
constexpr FieldType kBiasKinds[] = {kBiasOfIds, array_type(kBiasPair, 0, kMaxBiasEntries), kNever};

int32_t id_of_key(std::string_view key) {
  int32_t id = 0;
  std::from_chars(key.data(), key.data() + key.size(), id);
  return id;
}

float bias_of(const FieldValue& value) {
  return value.json().is_bool() ? -std::numeric_limits<float>::infinity() : value.number();
}

LogitBias logit_bias_of(const FieldValue& value) {
  LogitBias entries;
  if (value.json().is_bool()) return entries;
  if (value.json().is_array()) {
    for (const FieldValue& item : value.items()) {
      const auto pair = item.items();
      entries.emplace_back(pair[0].small_integer(), bias_of(pair[1]));
    }
    return entries;
  }
  for (const auto& [key, bias] : value.object()) {
    entries.emplace_back(id_of_key(key),
                         bias_of(FieldValue(value.at().below(key, bias), value.terms())));
  }
  return entries;
}

std::vector<std::string> texts_of(const FieldValue& value) {
  return value.json().is_string() ? std::vector{value.text()} : value.texts();
}

GenerationValue value_of(GenerationKind kind, const FieldValue& value) {
  switch (kind) {
    case GenerationKind::flag:
      return value.boolean();
    case GenerationKind::choice:
      return value.text();
    case GenerationKind::integer:
      return value.integer();
    case GenerationKind::seed:
      return value.seed();
    case GenerationKind::number:
      return value.at().number();
    case GenerationKind::texts:
      return texts_of(value);
    case GenerationKind::token_ids:
      return value.token_ids();
    case GenerationKind::logit_bias:
      return logit_bias_of(value);
  }
  return {};
}

// The value that leaving the field out means, if there is one.
FieldDefault default_of(const GenerationOption& option) {
  return std::visit(
      [&](auto member) -> FieldDefault {
        const auto value = GenerateOptions{}.*member;
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          if (option.choices.empty()) return value;
          return option.choices.substr(0, option.choices.find(' '));
        } else if constexpr (std::is_integral_v<T>) {
          return int64_t{value};
        } else if constexpr (std::is_floating_point_v<T>) {
          return double{value};
        } else {
          return std::monostate();
        }
      },
      option.member);
}

// The field of the option at `index` of the table.
template <size_t index>
struct OptionField {
  static constexpr const GenerationOption& kOption = kGenerationOptions[index];
  static constexpr ListLimits kList = kOption.list;
  static constexpr std::string_view kWords[] = {
      kOption.choices.substr(0, kOption.choices.find(' ')),
      kOption.choices.substr(kOption.choices.find(' ') + 1)};
  static constexpr FieldType kText = text_type(1, kList.max_bytes);
  static constexpr FieldType kTexts[] = {kText,
                                         array_type(kText, kList.min_items, kList.max_items)};

  static constexpr FieldType type() {
    switch (kind_of(kOption)) {
      case GenerationKind::flag:
        return kBoolean;
      case GenerationKind::choice:
        return word_type(kWords);
      case GenerationKind::integer:
        return integer_type(kOption.range);
      case GenerationKind::seed:
        return integer_type(std::numeric_limits<int64_t>::min(), kNoMaximum);
      case GenerationKind::number:
        return number_type(kOption.range);
      case GenerationKind::texts:
        return one_of_type(kTexts, "a string or an array of strings");
      case GenerationKind::token_ids:
        return array_type(kTokenId, kList.min_items, kList.max_items);
      case GenerationKind::logit_bias:
        return one_of_type(kBiasKinds, "an object of token ids and biases");
    }
    return kAnyValue;
  }
  static void read(const FieldValue& value, GenerateOptions& options) {
    set_option(options, kOption, value_of(kind_of(kOption), value));
  }
  static void read_other_name(const FieldValue& value, GenerateOptions& options) {
    if (is_set(options, kOption)) {
      value.refuse("only one of " + std::string(kOption.name) + " and " +
                   std::string(kOption.other_name));
    }
    read(value, options);
  }

  static void append(bool of_sampling, std::vector<FieldDef<GenerateOptions>>& fields) {
    const bool is_of_sampling = kOption.group == GenerationGroup::sampling;
    if (is_of_sampling != of_sampling || kOption.own_reader == OwnReader::requests) return;
    static const std::string words = unset_words(kOption);
    const FieldDefault by_default = default_of(kOption);
    const bool is_value = !std::holds_alternative<std::monostate>(by_default);
    fields.push_back(field(
        kOption.name, type(), kOption.help,
        {.by_default = by_default, .when_unset = is_value ? std::string_view() : words}, read));
    if (kOption.other_name.empty()) return;
    fields.push_back(field(kOption.other_name, type(), "llama.cpp's name of it.",
                           {.by_default = by_default, .alias_of = kOption.name}, read_other_name));
  }
};

template <size_t... index>
std::vector<FieldDef<GenerateOptions>> make_fields(bool of_sampling,
                                                   std::index_sequence<index...>) {
  std::vector<FieldDef<GenerateOptions>> fields;
  (OptionField<index>::append(of_sampling, fields), ...);
  return fields;
}

constexpr std::make_index_sequence<kNumGenerationOptions> kEveryIndex;

}  // namespace

FieldTable<GenerateOptions> sampling_fields() {
  static const auto fields = make_fields(true, kEveryIndex);
  return fields;
}

FieldTable<GenerateOptions> text_fields() {
  static const auto fields = make_fields(false, kEveryIndex);
  return fields;
}

}  // namespace paceline
