// What the copies of a model share: the tensors that are written, shards and their index, and the
// files beside them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "tensor/tensor.h"
#include "weights/checkpoint.h"
#include "weights/mlx_quantization.h"
#include "weights/safetensors_writer.h"

namespace paceline {

// A tensor of the copy: plain numbers, or a matrix packed by MLX, which stands in the file as
// MODULE.weight, MODULE.scales and MODULE.biases.
struct WrittenTensor {
  std::string name;
  Extents shape;                       // of the numbers
  DType dtype = DType::f32;            // of the numbers; of a packed matrix its scales' and biases'
  std::optional<AffineFormat> format;  // of a packed matrix
  // Of a stack of experts: the names of its matrices, which the source has one by one.
  std::vector<std::string> experts = {};
  size_t shard = 0;

  std::string module() const;  // of a matrix: its name without ".weight"
  int64_t num_elements() const;
  uint64_t bytes() const;
  void add_to(SafetensorsWriter& writer) const;
};

// Whether a tensor is a matrix of the text decoder whose rows are whole groups.
bool can_be_quantized(const CheckpointEntry& entry, int64_t group_size);

// Gives tensors their shards, in order, each as full as it may be.
class ShardFiller {
 public:
  explicit ShardFiller(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // The shard of the next tensor.
  size_t add(uint64_t bytes);
  size_t num_shards() const { return num_shards_; }

 private:
  uint64_t max_bytes_;
  uint64_t shard_bytes_ = 0;
  size_t num_shards_ = 1;
};

// "model.safetensors", or "model-00002-of-00003.safetensors".
std::string shard_name(size_t shard, size_t num_shards);

// model.safetensors.index.json of a copy in several shards. Throws the errors of NewFile.
void write_shard_index(std::span<const WrittenTensor> tensors, size_t num_shards,
                       const std::filesystem::path& directory);

// The field `quantization` of config.json: the usual format, and that of each packed matrix with
// another one.
Json::Object quantization_field(std::span<const WrittenTensor> tensors, AffineFormat usual);

// The fields of a config.json with the type of the weights under the keys that name it, here and in
// text_config.
Json::Object with_dtype_name(const Json::Object& fields, DType dtype);

// Copies the files beside the weights: tokenizer, chat templates, generation defaults, licences;
// not weights, their index, config.json and programs. Of the folders that modules.json lists also
// weights and config.json. Throws the errors of NewFile, MappedFile and embedding_folders().
void copy_model_files(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace paceline
