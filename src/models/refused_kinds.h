// Kinds of models that this decoder can't compute, by their names in config.json and GGUF files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// What an error says about a model type or a GGUF architecture that isn't supported: why, where the
// kind is known, and what runs. `known` is the list of supported names.
std::string unsupported_words(std::string_view name, std::string_view known);

// Why a repository's name says that the model can't be run: it names a kind of the table, or a
// method of quantisation that isn't read. Nothing for any other name.
std::optional<std::string> refusal_by_name(std::string_view repository);

}  // namespace paceline
