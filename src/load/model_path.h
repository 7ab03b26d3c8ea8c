// Finds the directory or the GGUF file that a model argument names.
#pragma once

#include <filesystem>
#include <string>

namespace paceline {

// `model` is a directory, a GGUF file, or NAME or OWNER/NAME in the local Hugging Face cache
// (HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub), at the revision of refs/main. A
// directory without config.json but with one GGUF file means that file (the first part of a split
// one). Throws Error invalid when there are several, and not_found: of a path with the nearest one,
// of a name with the `hf download` command, unless the name is of a kind of model that can't be
// run. Never downloads anything.
std::filesystem::path find_model(const std::string& model);

// The local Hugging Face cache, whether or not it is there.
std::filesystem::path hub_cache();

// Whether it is a later part of a split file, such as NAME-00002-of-00003.gguf.
bool is_later_part(const std::filesystem::path& path);

// The model used when none is named: models/paceline-10m beside the binary's source tree, or the
// installed share/paceline/models. Throws Error not_found naming the places searched.
std::filesystem::path bundled_model_directory();

}  // namespace paceline
