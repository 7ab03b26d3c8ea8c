// The files of a model's directory that a changed copy of the model keeps as they are.
#pragma once

#include <filesystem>

namespace paceline {

// Copies the files beside the weights: the tokenizer's, chat templates, generation defaults,
// licences. Leaves out weights, their index, config.json and programs. Throws the errors of NewFile
// and MappedFile.
void copy_model_files(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace paceline
