// The files of a model's directory that a changed copy of the model keeps as they are.
#pragma once

#include <filesystem>

namespace paceline {

// Copies what stands beside the weights: the tokenizer's files, chat templates, generation
// defaults, licences. Neither weights and their index nor config.json, and no programs. Throws what
// NewFile and MappedFile throw.
void copy_model_files(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace paceline
