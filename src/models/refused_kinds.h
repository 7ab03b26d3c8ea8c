// Kinds of models that this decoder can't compute, by their names in config.json and GGUF files.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// What an error says about a model type or a GGUF architecture that isn't supported: why, where the
// kind is known, and what runs. `known` is the list of supported names.
std::string unsupported_words(std::string_view name, std::string_view known);

}  // namespace paceline
