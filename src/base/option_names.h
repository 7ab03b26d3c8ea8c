// The names that flags, files and the C API give the values of options.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "paceline/error.h"
#include "paceline/options.h"
#include "paceline/train_options.h"

namespace paceline {

template <class E>
using OptionNames = std::span<const std::pair<E, std::string_view>>;

// In the order in which messages list them.
OptionNames<DataType> option_names(DataType);
OptionNames<LoadQuantization> option_names(LoadQuantization);
OptionNames<Activations> option_names(Activations);
OptionNames<DraftMethod> option_names(DraftMethod);
OptionNames<SpecAccept> option_names(SpecAccept);
OptionNames<FineTuneType> option_names(FineTuneType);
OptionNames<LossTokens> option_names(LossTokens);
OptionNames<RateSchedule> option_names(RateSchedule);
OptionNames<OptimizerKind> option_names(OptimizerKind);

// "?" for a number that is none of the values.
template <class E>
std::string_view option_name(E value) {
  for (const auto& [named, name] : option_names(E())) {
    if (named == value) return name;
  }
  return "?";
}

template <class E>
std::optional<E> find_option_value(std::string_view name) {
  for (const auto& [value, named] : option_names(E())) {
    if (named == name) return value;
  }
  return std::nullopt;
}

// Throws Error invalid "WHERE: found NAME, expected one of ...".
template <class E>
E option_value(std::string_view name, std::string_view where) {
  if (const auto value = find_option_value<E>(name)) return *value;
  std::string all;
  for (const auto& [value, named] : option_names(E())) {
    if (!named.empty()) all += fmt::format("{}{}", all.empty() ? "" : ", ", named);
  }
  throw Error(ErrorCode::invalid,
              fmt::format("{}: found \"{}\", expected one of {}", where, name, all));
}

}  // namespace paceline
