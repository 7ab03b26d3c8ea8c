// What the writers of all formats share.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/pair_collector.h"
#include "base/json_writer.h"

namespace paceline {

// A matrix of a file. `bytes` makes its bytes when they are written.
struct WrittenMatrix {
  std::string name;
  DType dtype = DType::f32;
  Extents shape;
  std::function<std::vector<std::byte>()> bytes;
};

// The matrix as it is, or transposed; it must outlive the result.
WrittenMatrix whole_matrix(std::string name, const Tensor& matrix);
WrittenMatrix transposed_matrix(std::string name, const Tensor& matrix);

// Writes all matrices to a new safetensors file; `format` is of its metadata.
void write_matrices(std::vector<WrittenMatrix> matrices, const std::filesystem::path& path,
                    std::string_view format);

// An alpha and a scale as numbers of a config, from which the pair's float32 scale can be computed
// again: the pair's own where its alpha / rank is the scale, else scale x rank, which is exact.
double alpha_to_write(const LoraPair& pair);
double scale_to_write(const LoraPair& pair);

// An integer where it is one: PEFT's alphas usually are.
void write_number(JsonWriter& json, double value);

}  // namespace paceline
