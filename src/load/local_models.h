// Finds the models in the caches of this machine that programs share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace paceline {

struct LocalModel {
  std::string name;            // what --model takes
  std::string cache;           // "Hugging Face", "llama.cpp", "LM Studio", "Ollama (llama3.2:1b)"
  std::filesystem::path path;  // a directory or a file
  uint64_t bytes = 0;          // of its files
};

// In the order of the caches, then of the names: Hugging Face's hub, and under `home` llama.cpp's,
// LM Studio's and Ollama's, or where LLAMA_CACHE and OLLAMA_MODELS say. What can't be read is left
// out. Sources: llama.cpp's common/common.cpp (fs_get_cache_directory), Ollama's docs/faq.md, LM
// Studio's "Import Models".
std::vector<LocalModel> find_local_models(const std::filesystem::path& home);

}  // namespace paceline
