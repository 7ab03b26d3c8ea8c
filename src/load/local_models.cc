#include "load/local_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "base/error.h"
#include "base/json.h"
#include "base/json_cursor.h"
#include "base/mapped_file.h"
#include "load/model_path.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGguf = ".gguf";

fs::path directory_of(const char* variable, const fs::path& otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : fs::path(value);
}

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    paths.push_back(at->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Of a file, or of all files in a directory; links count as what they name.
uint64_t bytes_of(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return fs::file_size(path, error);
  uint64_t bytes = 0;
  for (const fs::path& entry : entries_of(path)) {
    if (fs::is_regular_file(entry, error)) bytes += fs::file_size(entry, error);
  }
  return bytes;
}

void add_path(const fs::path& path, std::string_view cache, std::vector<LocalModel>& found) {
  found.push_back(
      {.name = path.string(), .cache = std::string(cache), .path = path, .bytes = bytes_of(path)});
}

// "models--org--name" is org/name.
void add_hub(std::vector<LocalModel>& found) {
  constexpr std::string_view kPrefix = "models--", kSlash = "--";
  for (const fs::path& repository : entries_of(hub_cache())) {
    const std::string folder = repository.filename().string();
    if (!folder.starts_with(kPrefix)) continue;
    std::string name = folder.substr(kPrefix.size());
    if (const size_t at = name.find(kSlash); at != std::string::npos) {
      name.replace(at, kSlash.size(), "/");
    }
    fs::path path = repository;
    try {
      path = find_model(name);
    } catch (const Error&) {  // not whole, or of several GGUF files
    }
    found.push_back({.name = name, .cache = "Hugging Face", .path = path, .bytes = bytes_of(path)});
  }
}

// GGUF files, the first part of each; directories with a config.json; in folders up to `depth`
// levels down.
void add_folder(const fs::path& folder, std::string_view cache, int depth,
                std::vector<LocalModel>& found) {
  std::error_code error;
  if (fs::exists(folder / "config.json", error)) return add_path(folder, cache, found);
  for (const fs::path& entry : entries_of(folder)) {
    if (entry.extension() == kGguf && !is_later_part(entry)) {
      add_path(entry, cache, found);
    } else if (depth > 0 && fs::is_directory(entry, error)) {
      add_folder(entry, cache, depth - 1, found);
    }
  }
}

// A manifest is JSON whose layers name files by their digests; one of them is the model.
fs::path blob_of(const fs::path& models, const fs::path& manifest) {
  constexpr size_t kMaxManifestBytes = 1 << 20;
  constexpr std::string_view kModel = "application/vnd.ollama.image.model";
  const Json json = parse_json(read_text_file(manifest, kMaxManifestBytes), manifest.string());
  for (const JsonCursor& layer : JsonCursor(json, manifest.string()).at("layers").items()) {
    if (layer.at("mediaType").string() != kModel) continue;
    std::string file = layer.at("digest").string();
    std::replace(file.begin(), file.end(), ':', '-');
    if (file.find('/') == std::string::npos) return models / "blobs" / file;
  }
  return {};
}

// manifests/HOST/OWNER/NAME/TAG
void add_ollama(const fs::path& models, std::vector<LocalModel>& found) {
  for (const fs::path& host : entries_of(models / "manifests")) {
    for (const fs::path& owner : entries_of(host)) {
      for (const fs::path& name : entries_of(owner)) {
        for (const fs::path& tag : entries_of(name)) {
          try {
            const fs::path blob = blob_of(models, tag);
            const std::string called =
                fmt::format("{}:{}", name.filename().string(), tag.filename().string());
            if (!blob.empty()) add_path(blob, fmt::format("Ollama ({})", called), found);
          } catch (const Error&) {  // no manifest
          }
        }
      }
    }
  }
}

}  // namespace

std::vector<LocalModel> find_local_models(const fs::path& home) {
  std::vector<LocalModel> found;
  add_hub(found);
  add_folder(directory_of("LLAMA_CACHE", home / ".cache" / "llama.cpp"), "llama.cpp", 0, found);
  constexpr int kPublisherAndName = 2;
  add_folder(home / ".lmstudio" / "models", "LM Studio", kPublisherAndName, found);
  add_folder(home / ".cache" / "lm-studio" / "models", "LM Studio", kPublisherAndName, found);
  add_ollama(directory_of("OLLAMA_MODELS", home / ".ollama" / "models"), found);
  return found;
}

}  // namespace paceline
