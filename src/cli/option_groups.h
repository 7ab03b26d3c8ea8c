// The definitions of options, a file per subject; option_table() has all of them in this order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "cli/option.h"

namespace paceline {

std::span<const OptionDef> input_options();       // groups input and output
std::span<const OptionDef> constraint_options();  // constraint
std::span<const OptionDef> generation_options();  // sampling and stopping
std::span<const OptionDef> measuring_options();   // measuring
std::span<const OptionDef> quantizing_options();  // quantizing
std::span<const OptionDef> training_options();    // data and training
std::span<const OptionDef> model_options();       // model and memory
std::span<const OptionDef> adapter_options();     // model: LoRA
std::span<const OptionDef> batching_options();    // batching
std::span<const OptionDef> speculation_options();
std::span<const OptionDef> serving_options();  // serving
std::span<const OptionDef> general_options();  // general

// Shared by several of the files: sets of commands, and the largest count of tokens.
constexpr CommandSet kLoading = set_of({CommandId::generate, CommandId::chat, CommandId::classify,
                                        CommandId::score, CommandId::embed, CommandId::perplexity,
                                        CommandId::bench, CommandId::batch, CommandId::serve});
constexpr CommandSet kOnModel = kLoading | set_of({CommandId::inspect});
constexpr CommandSet kChatting = set_of({CommandId::chat, CommandId::render});
constexpr CommandSet kWriting = set_of({CommandId::generate, CommandId::chat});
constexpr double kMaxTokens = 2147483647;

// Convert the stored value of a kind to the type of a setting.
inline bool as_flag(const OptionValue& value) { return std::get<bool>(value); }
inline int64_t as_integer(const OptionValue& value) { return std::get<int64_t>(value); }
inline const std::vector<int64_t>& as_integers(const OptionValue& value) {
  return std::get<std::vector<int64_t>>(value);
}
inline const std::vector<double>& as_numbers(const OptionValue& value) {
  return std::get<std::vector<double>>(value);
}
inline const std::vector<std::string>& as_texts(const OptionValue& value) {
  return std::get<std::vector<std::string>>(value);
}
inline float as_real(const OptionValue& value) {
  return static_cast<float>(std::get<double>(value));
}
inline size_t as_bytes(const OptionValue& value) { return std::get<uint64_t>(value); }
inline const std::string& as_text(const OptionValue& value) { return std::get<std::string>(value); }

}  // namespace paceline
