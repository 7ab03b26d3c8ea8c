#include "load/model_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "base/new_file.h"
#include "load/embedding_files.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeight = ".weight";

bool is_copied(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name == "config.json" || name.ends_with(".index.json")) return false;
  if (name.starts_with("LICENSE") || name.starts_with("NOTICE")) return true;
  constexpr std::string_view kExtensions[] = {".json", ".jinja", ".model", ".txt"};
  return std::ranges::find(kExtensions, path.extension().string()) != std::end(kExtensions);
}

// Of a folder of sentence-transformers' modules, weights too.
bool is_copied_of_module(const fs::path& path) {
  return is_copied(path) || path.filename() == "config.json" ||
         path.extension() == ".safetensors" || path.filename().string().ends_with(".index.json");
}

// Copies a folder's files of these names.
void copy_files(const fs::path& from, const fs::path& to, bool (*is_wanted)(const fs::path&)) {
  std::error_code error;
  fs::directory_iterator at(from, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (!is_wanted(at->path()) || !at->is_regular_file()) continue;
    NewFile copy(to / at->path().filename());
    copy.append(MappedFile(at->path()).bytes());
    copy.commit();
  }
  if (error) {
    throw Error(ErrorCode::not_found,
                fmt::format("{}: can't be listed: {}", from.string(), error.message()));
  }
}

Json::Object format_fields(AffineFormat format) {
  return {{"group_size", Json(format.group_size)},
          {"bits", Json(int64_t{format.bits})},
          {"mode", Json(std::string("affine"))}};
}

bool is_dtype_key(std::string_view key) { return key == "dtype" || key == "torch_dtype"; }
// Whether a matrix chooses experts: its rounding would change which are chosen.
bool is_router(std::string_view name) {
  constexpr std::string_view kRouters[] = {".mlp.gate.weight",
                                           ".mlp.router.weight",
                                           ".mlp.shared_expert_gate.weight",
                                           ".block_sparse_moe.gate.weight",
                                           ".block_sparse_moe.router.weight",
                                           ".block_sparse_moe.router.layer.weight"};
  return std::ranges::any_of(kRouters, [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace

std::string WrittenTensor::module() const { return name.substr(0, name.size() - kWeight.size()); }

int64_t WrittenTensor::num_elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

uint64_t WrittenTensor::bytes() const {
  const auto elements = static_cast<uint64_t>(num_elements());
  if (!format) return elements * dtype_bytes(dtype);
  const auto per_group = 2 * uint64_t{dtype_bytes(dtype)};
  return elements * static_cast<uint64_t>(format->bits) / 8 +
         elements / static_cast<uint64_t>(format->group_size) * per_group;
}

void WrittenTensor::add_to(SafetensorsWriter& writer) const {
  const std::string_view type = safetensors_dtype_name(dtype);
  if (!format) return writer.add(name, type, shape);
  const int64_t length = shape[shape.rank() - 1];
  Extents words = shape, per_group = shape;
  words[shape.rank() - 1] = length * format->bits / 32;
  per_group[shape.rank() - 1] = length / format->group_size;
  writer.add(name, "U32", words);
  writer.add(module() + ".scales", type, per_group);
  writer.add(module() + ".biases", type, per_group);
}

bool can_be_quantized(const CheckpointEntry& entry, int64_t group_size) {
  return entry.name.ends_with(kWeight) && entry.shape.rank() == 2 && entry.shape[0] > 0 &&
         entry.shape[1] > 0 && entry.shape[1] % group_size == 0 &&
         !is_outside_the_decoder(entry.name) && !is_router(entry.name);
}

size_t ShardFiller::add(uint64_t bytes) {
  if (shard_bytes_ > 0 && shard_bytes_ + bytes > max_bytes_) {
    ++num_shards_;
    shard_bytes_ = 0;
  }
  shard_bytes_ += bytes;
  return num_shards_ - 1;
}

std::string shard_name(size_t shard, size_t num_shards) {
  if (num_shards == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, num_shards);
}

void write_shard_index(std::span<const WrittenTensor> tensors, size_t num_shards,
                       const fs::path& directory) {
  std::map<std::string, std::string> files;
  uint64_t total_size = 0;
  int64_t parameters = 0;
  for (const WrittenTensor& tensor : tensors) {
    const std::string file = shard_name(tensor.shard, num_shards);
    files[tensor.name] = file;
    total_size += tensor.bytes();
    parameters += tensor.num_elements();
    if (!tensor.format) continue;
    files[tensor.module() + ".scales"] = file;
    files[tensor.module() + ".biases"] = file;
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("metadata").begin_object();
  json.member("total_size", total_size).member("total_parameters", parameters).end_object();
  json.key("weight_map").begin_object();
  for (const auto& [name, file] : files) json.member(name, file);
  json.end_object().end_object();
  write_new_file(directory / "model.safetensors.index.json", text + "\n");
}

Json::Object quantization_field(std::span<const WrittenTensor> tensors, AffineFormat usual) {
  Json::Object field = format_fields(usual);
  for (const WrittenTensor& tensor : tensors) {
    if (!tensor.format || *tensor.format == usual) continue;
    field.emplace_back(tensor.module(), format_fields(*tensor.format));
  }
  return field;
}

Json::Object with_dtype_name(const Json::Object& fields, DType dtype) {
  Json::Object changed;
  for (const auto& [key, value] : fields) {
    if (is_dtype_key(key) && value.is_string()) {
      changed.emplace_back(key, std::string(dtype_name(dtype)));
    } else if (key == "text_config" && value.is_object()) {
      changed.emplace_back(key, with_dtype_name(*value.object(), dtype));
    } else {
      changed.emplace_back(key, value);
    }
  }
  return changed;
}

void copy_model_files(const fs::path& from, const fs::path& to) {
  copy_files(from, to, is_copied);
  for (const std::string& folder : embedding_folders(from)) {
    if (!fs::is_directory(from / folder)) continue;
    fs::create_directories(to / folder);
    copy_files(from / folder, to / folder, is_copied_of_module);
  }
}

}  // namespace paceline
