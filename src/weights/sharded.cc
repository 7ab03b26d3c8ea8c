// The Checkpoint of one or several safetensors files.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/mapped_file.h"
#include "weights/checkpoint.h"
#include "weights/quoted_name.h"
#include "weights/safetensors.h"
#include "weights/shard_index.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// The place of a tensor's bytes; parallel to the entries.
struct Location {
  size_t file_index = 0;
  std::span<const std::byte> bytes;
};

// Not thread-safe.
class SafetensorsCheckpoint : public Checkpoint {
 public:
  SafetensorsCheckpoint(fs::path directory, const std::vector<fs::path>& paths);

  std::string origin() const override { return directory_.string(); }
  std::span<const MappedFile> files() const override { return files_; }
  const std::vector<CheckpointEntry>& entries() const override { return entries_; }
  bool contains(std::string_view name) const override { return find(name).has_value(); }
  std::optional<Extents> shape_of(std::string_view name) const override;
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override;
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view /*name*/,
                                                  const Extents& /*shape*/) override {
    return nullptr;
  }
  void release(std::string_view name) override;

  // Throws Error corrupt when a tensor isn't in the file that the index names.
  void check_index(const std::vector<ShardedTensor>& index, std::string_view where) const;

 private:
  std::optional<size_t> find(std::string_view name) const;
  const std::byte* aligned_bytes(size_t entry_index);
  std::string file_of(size_t entry_index) const {
    return files_[locations_[entry_index].file_index].path().filename().string();
  }

  fs::path directory_;
  std::vector<MappedFile> files_;
  std::vector<CheckpointEntry> entries_;  // sorted by name
  std::vector<Location> locations_;
  // Copies of tensors that aren't aligned in the file.
  std::unordered_map<size_t, std::vector<std::byte>> aligned_copies_;
};

SafetensorsCheckpoint::SafetensorsCheckpoint(fs::path directory, const std::vector<fs::path>& paths)
    : directory_(std::move(directory)) {
  struct Found {
    SafetensorsTensor tensor;
    size_t file_index;
  };
  std::vector<Found> found;
  for (const fs::path& path : paths) {
    const MappedFile& file = files_.emplace_back(path);
    for (SafetensorsTensor& tensor : parse_safetensors_header(file.bytes(), path.string())) {
      found.push_back({std::move(tensor), files_.size() - 1});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.tensor.name < b.tensor.name; });
  for (auto& [tensor, file_index] : found) {
    if (!entries_.empty() && entries_.back().name == tensor.name) {
      throw Error(ErrorCode::corrupt,
                  fmt::format("{}: tensor {} is both in {} and in {}", directory_.string(),
                              quoted_name(tensor.name), file_of(entries_.size() - 1),
                              files_[file_index].path().filename().string()));
    }
    entries_.push_back(
        {std::move(tensor.name), tensor.dtype, tensor.shape, std::move(tensor.note)});
    locations_.push_back({file_index, tensor.bytes});
  }
}

std::optional<size_t> SafetensorsCheckpoint::find(std::string_view name) const {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](const CheckpointEntry& entry, std::string_view key) { return entry.name < key; });
  if (at == entries_.end() || at->name != name) return std::nullopt;
  return static_cast<size_t>(at - entries_.begin());
}

std::optional<Extents> SafetensorsCheckpoint::shape_of(std::string_view name) const {
  const auto index = find(name);
  if (!index) return std::nullopt;
  return entries_[*index].shape;
}

Tensor SafetensorsCheckpoint::read_tensor(std::string_view name, const Extents& shape,
                                          ReadAs /*as*/) {
  const auto index = find(name);
  if (!index) {
    throw Error(ErrorCode::not_found, fmt::format("{}: tensor {} of shape {} is missing", origin(),
                                                  quoted_name(name), to_string(shape)));
  }
  const CheckpointEntry& entry = entries_[*index];
  if (!(entry.shape == shape)) {
    throw Error(ErrorCode::corrupt,
                fmt::format("{}: tensor {} has shape {}, but config.json needs {}",
                            (directory_ / file_of(*index)).string(), quoted_name(name),
                            to_string(entry.shape), to_string(shape)));
  }
  return Tensor(const_cast<std::byte*>(aligned_bytes(*index)), entry.dtype, entry.shape);
}

const std::byte* SafetensorsCheckpoint::aligned_bytes(size_t entry_index) {
  const auto bytes = locations_[entry_index].bytes;
  const size_t alignment = dtype_bytes(entries_[entry_index].dtype);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) return bytes.data();
  auto [copy, is_new] = aligned_copies_.try_emplace(entry_index);
  if (is_new) copy->second.assign(bytes.begin(), bytes.end());
  return copy->second.data();
}

void SafetensorsCheckpoint::release(std::string_view name) {
  const auto index = find(name);
  if (!index) return;
  const Location& location = locations_[*index];
  aligned_copies_.erase(*index);
  files_[location.file_index].release_pages(location.bytes);
}

void SafetensorsCheckpoint::check_index(const std::vector<ShardedTensor>& index,
                                        std::string_view where) const {
  for (const auto& [name, file] : index) {
    const auto entry_index = find(name);
    if (entry_index && file_of(*entry_index) == file) continue;
    const std::string instead =
        entry_index ? fmt::format("; it is in {}", file_of(*entry_index)) : std::string();
    throw Error(ErrorCode::corrupt, fmt::format("{}: tensor {} isn't in {}{}", where,
                                                quoted_name(name), file, instead));
  }
}

// Includes a dangling symbolic link, so that the error of opening it names it.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";

std::unique_ptr<Checkpoint> open_indexed(const fs::path& directory, const fs::path& index_path) {
  const std::string where = index_path.string();
  const auto index = parse_shard_index(MappedFile(index_path).bytes(), where);
  std::map<std::string, std::string> tensor_of_file;  // the first one, for the message
  for (const auto& [name, file] : index) tensor_of_file.try_emplace(file, name);
  std::vector<fs::path> paths;
  for (const auto& [file, tensor] : tensor_of_file) {
    paths.push_back(directory / file);
    if (!is_there(paths.back())) {
      throw Error(ErrorCode::not_found,
                  fmt::format("{}: the shard {} of tensor {} is missing; download it again", where,
                              quoted_name(file), quoted_name(tensor)));
    }
  }
  auto checkpoint = std::make_unique<SafetensorsCheckpoint>(directory, paths);
  checkpoint->check_index(index, where);
  return checkpoint;
}

// Sorted.
std::vector<fs::path> files_ending_in(const fs::path& directory, std::string_view extension) {
  std::error_code error;
  std::vector<fs::path> paths;
  fs::directory_iterator at(directory, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->path().extension() == extension) paths.push_back(at->path());
  }
  if (error) {
    throw Error(ErrorCode::not_found,
                fmt::format("{}: can't be listed: {}", directory.string(), error.message()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Files of torch.save aren't read, because they contain programs for Python's pickle.
[[noreturn]] void throw_no_weights(const fs::path& directory) {
  for (const std::string_view extension : {".bin", ".pth"}) {
    for (const fs::path& path : files_ending_in(directory, extension)) {
      const std::string name = path.filename().string();
      if (extension == ".bin" && !name.starts_with("pytorch_model")) continue;
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}: the weights are in PyTorch's own format ({}), which isn't read; "
                              "convert them to safetensors, in Python: transformers."
                              "AutoModelForCausalLM.from_pretrained(DIR).save_pretrained(NEW_DIR)",
                              directory.string(), quoted_name(name)));
    }
  }
  throw Error(ErrorCode::not_found,
              fmt::format("{}: no weights: neither model.safetensors nor "
                          "model.safetensors.index.json nor another *.safetensors file",
                          directory.string()));
}

}  // namespace

std::optional<std::string> unread_weights(const fs::path& directory) {
  if (!is_there(directory / kSingleFile) || !is_there(directory / kIndexFile)) return std::nullopt;
  return fmt::format(
      "{}: {} is read, {} and the shards that it lists aren't; remove what doesn't "
      "belong to the model",
      directory.string(), kSingleFile, kIndexFile);
}

std::unique_ptr<Checkpoint> open_checkpoint(const fs::path& directory) {
  const fs::path single = directory / kSingleFile;
  const fs::path index = directory / kIndexFile;
  if (is_there(single)) {
    return std::make_unique<SafetensorsCheckpoint>(directory, std::vector{single});
  }
  if (is_there(index)) return open_indexed(directory, index);
  const auto paths = files_ending_in(directory, ".safetensors");
  if (paths.empty()) throw_no_weights(directory);
  return std::make_unique<SafetensorsCheckpoint>(directory, paths);
}

}  // namespace paceline
