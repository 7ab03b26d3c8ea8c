// Adapters' files for tests, and the small base that they fit.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/adapter_base.h"
#include "adapters/adapter_files.h"
#include "tests/expect_error.h"
#include "tests/weights/written_files.h"

namespace paceline {

// A decoder of `num_layers` layers with hidden size 4, queries of 8, keys and values of 4, an MLP
// of 6, and a head for 10 tokens.
inline AdapterBase small_base(int64_t num_layers = 2) {
  const std::map<std::string, MatrixSize, std::less<>> sizes = {
      {"self_attn.q_proj", {8, 4}}, {"self_attn.k_proj", {4, 4}}, {"self_attn.v_proj", {4, 4}},
      {"self_attn.o_proj", {4, 8}}, {"mlp.gate_proj", {6, 4}},    {"mlp.up_proj", {6, 4}},
      {"mlp.down_proj", {4, 6}}};
  AdapterBase base;
  base.num_layers = num_layers;
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    for (const auto& [part, size] : sizes) {
      base.modules.push_back("layers." + std::to_string(layer) + "." + part);
    }
  }
  base.modules.emplace_back("lm_head");
  base.size_of = [sizes, num_layers](std::string_view module) -> std::optional<MatrixSize> {
    if (module == "lm_head") return MatrixSize{10, 4};
    const auto split = split_layer_module(module);
    if (!split || split->layer >= num_layers) return std::nullopt;
    const auto at = sizes.find(split->part);
    if (at == sizes.end()) return std::nullopt;
    return at->second;
  };
  return base;
}

// The number of elements of a float32 matrix, counted up from `first`.
inline std::string counted_floats(uint64_t count, float first) {
  std::vector<float> values;
  for (uint64_t i = 0; i < count; ++i) values.push_back(first + static_cast<float>(i));
  return bytes_of(values);
}

inline FileTensor written_matrix(std::string name, uint64_t rows, uint64_t columns,
                                 float first = 1) {
  return {std::move(name), "F32", {rows, columns}, counted_floats(rows * columns, first)};
}

// A and B of a module in PEFT's format, behind "base_model.model.".
inline std::vector<FileTensor> peft_pair(const std::string& module, MatrixSize size,
                                         uint64_t rank = 2) {
  const std::string name = "base_model.model." + module;
  return {written_matrix(name + ".lora_A.weight", rank, static_cast<uint64_t>(size.in)),
          written_matrix(name + ".lora_B.weight", static_cast<uint64_t>(size.out), rank, 100)};
}

inline std::vector<FileTensor> joined(std::vector<FileTensor> first,
                                      const std::vector<FileTensor>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const std::string kQuery = "model.layers.0.self_attn.q_proj";

// Pairs of the queries of both layers.
inline std::vector<FileTensor> query_pairs() {
  return joined(peft_pair(kQuery, {8, 4}), peft_pair("model.layers.1.self_attn.q_proj", {8, 4}));
}

inline const std::string kPeftConfig =
    R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6, "target_modules": ["q_proj"]})";

// The config with other fields first; `fields` ends with a comma.
inline std::string peft_config(std::string_view fields) {
  return R"({"peft_type": "LORA", "r": 2, "lora_alpha": 6, )" + std::string(fields) +
         R"("task_type": "CAUSAL_LM"})";
}

inline void write_peft(const TestDirectory& directory, std::string_view config,
                       const std::vector<FileTensor>& tensors) {
  directory.write("adapter_config.json", config);
  directory.write("adapter_model.safetensors", safetensors_file(tensors));
}

// The elements of a matrix as float32.
inline std::vector<float> floats_of(const Tensor& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.num_elements()));
  copy_elements(matrix, Tensor(values.data(), DType::f32, matrix.shape()));
  return values;
}

}  // namespace paceline
