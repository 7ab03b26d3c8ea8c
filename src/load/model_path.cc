#include "load/model_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "models/refused_kinds.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBundledModel = "paceline-10m";

fs::path environment_path(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

// NAME or OWNER/NAME with the characters that the hub allows: never a path out of the cache's
// folder.
bool is_repository_name(const std::string& model) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  };
  const size_t slash = model.find('/');
  return !model.empty() && slash != 0 && model.back() != '/' && model.find("..") == model.npos &&
         (slash == model.npos || model.find('/', slash + 1) == model.npos) && model[0] != '.' &&
         std::all_of(model.begin(), model.end(), allowed);
}

// A file's name, or a path into a folder that is there, is no name of the hub.
bool is_written_like_a_path(const std::string& model) {
  constexpr std::string_view kFileEndings[] = {".gguf", ".safetensors", ".bin", ".json"};
  const auto ends_so = [&](std::string_view end) { return model.ends_with(end); };
  std::error_code ignored;
  return std::ranges::any_of(kFileEndings, ends_so) ||
         (model.find('/') != model.npos &&
          fs::is_directory(fs::path(model).parent_path(), ignored));
}

// The entry of the folder where `path` should be whose name is nearest, for the end of a message.
std::string nearest_path(const fs::path& path) {
  const fs::path whole = path.has_filename() ? path : path.parent_path();
  const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  std::vector<std::string> names;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::vector<std::string_view> views(names.begin(), names.end());
  const auto closest = closest_name(whole.filename().string(), views);
  if (!closest) return {};
  return fmt::format("; did you mean {}?", (folder / *closest).lexically_normal().string());
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

// The folder of the revision in refs/main; empty when the cache doesn't have the repository.
fs::path snapshot_directory(const std::string& model) {
  std::string folder = "models--" + model;
  if (const size_t slash = folder.find('/'); slash != folder.npos) folder.replace(slash, 1, "--");
  const fs::path repository = hub_cache() / folder;
  std::error_code ignored;
  const fs::path reference = repository / "refs" / "main";
  if (!fs::exists(reference, ignored)) return {};
  constexpr size_t kMaxReferenceBytes = 256;
  const std::string revision = trimmed(read_text_file(reference, kMaxReferenceBytes));
  if (revision.empty() || revision.find('/') != std::string::npos || revision[0] == '.') return {};
  const fs::path snapshot = repository / "snapshots" / revision;
  return fs::is_directory(snapshot, ignored) ? snapshot : fs::path();
}

constexpr std::string_view kExtension = ".gguf";

// The directory itself, or the only GGUF file in it.
fs::path model_in(const fs::path& directory) {
  std::error_code ignored;
  if (fs::exists(directory / "config.json", ignored)) return directory;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const fs::path& path = entry.path();
    if (path.extension() == kExtension && !is_later_part(path)) found.push_back(path);
  }
  if (found.empty() && fs::exists(directory / "adapter_config.json", ignored)) {
    throw Error(
        ErrorCode::invalid,
        fmt::format("model {}: a LoRA adapter (adapter_config.json), expected a model; give "
                    "its base model with -m and the adapter with --lora",
                    directory.string()));
  }
  if (found.empty()) return directory;
  if (found.size() == 1) return found[0];
  std::sort(found.begin(), found.end());
  throw Error(ErrorCode::invalid,
              fmt::format("model {}: has no config.json and {} GGUF files; name one of them, e.g. "
                          "-m {}",
                          directory.string(), found.size(), found[0].string()));
}

}  // namespace

fs::path hub_cache() {
  if (auto cache = environment_path("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (auto home = environment_path("HF_HOME"); !home.empty()) return home / "hub";
  if (auto cache = environment_path("XDG_CACHE_HOME"); !cache.empty()) {
    return cache / "huggingface" / "hub";
  }
  return environment_path("HOME") / ".cache" / "huggingface" / "hub";
}

bool is_later_part(const fs::path& path) {
  constexpr std::string_view kPart = "-00001-of-00001";
  const std::string stem = path.stem().string();
  if (stem.size() < kPart.size()) return false;
  const std::string end = stem.substr(stem.size() - kPart.size());
  for (size_t i = 0; i < end.size(); ++i) {
    const bool is_digit = end[i] >= '0' && end[i] <= '9';
    if (is_digit != (kPart[i] == '0' || kPart[i] == '1')) return false;
    if (!is_digit && end[i] != kPart[i]) return false;
  }
  return end.substr(1, 5) != "00001";
}

fs::path find_model(const std::string& model) {
  std::error_code ignored;
  if (fs::is_directory(model, ignored)) return model_in(model);
  if (fs::exists(model, ignored)) {
    if (fs::path(model).extension() == kExtension) return model;
    throw Error(ErrorCode::invalid,
                fmt::format("model {}: a file, expected a directory with config.json and weights, "
                            "or a file whose name ends in {}",
                            model, kExtension));
  }
  const bool could_be_cached = is_repository_name(model);
  if (could_be_cached) {
    const fs::path snapshot = snapshot_directory(model);
    if (!snapshot.empty()) return model_in(snapshot);
  }
  if (!could_be_cached || is_written_like_a_path(model)) {
    throw Error(ErrorCode::not_found, fmt::format("model {}: there is no such directory or file{}",
                                                  model, nearest_path(model)));
  }
  const auto refusal = refusal_by_name(model);
  throw Error(
      ErrorCode::not_found,
      fmt::format("model {}: no such directory, and not in the local Hugging Face cache "
                  "{}; {}",
                  model, hub_cache().string(),
                  refusal ? fmt::format("by its name it could not be run either: {}", *refusal)
                          : fmt::format("`hf download {}` brings it", model)));
}

fs::path bundled_model_directory() {
  std::error_code failed;
  const fs::path binary = fs::read_symlink("/proc/self/exe", failed).parent_path();
  // build/PRESET/paceline in a checkout, bin/paceline when installed.
  const std::array<fs::path, 2> places = {
      binary.parent_path().parent_path() / "models" / kBundledModel,
      binary.parent_path() / "share" / "paceline" / "models" / kBundledModel};
  for (const fs::path& place : places) {
    if (fs::is_directory(place, failed)) return place;
  }
  throw Error(ErrorCode::not_found,
              fmt::format("the bundled model is neither at {} nor at {}; name another with -m",
                          places[0].string(), places[1].string()));
}

}  // namespace paceline
