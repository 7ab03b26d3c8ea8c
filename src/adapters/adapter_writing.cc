#include "adapters/adapter_writing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "weights/safetensors_writer.h"

namespace paceline {
namespace {

bool alpha_gives_scale(const LoraPair& pair) {
  return static_cast<float>(pair.alpha / static_cast<double>(pair.rank())) == pair.scale;
}

}  // namespace

WrittenMatrix whole_matrix(std::string name, const Tensor& matrix) {
  return {
      .name = std::move(name), .dtype = matrix.dtype(), .shape = matrix.shape(), .bytes = [matrix] {
        const auto bytes = matrix.bytes();
        return std::vector(bytes.begin(), bytes.end());
      }};
}

WrittenMatrix transposed_matrix(std::string name, const Tensor& matrix) {
  return {.name = std::move(name),
          .dtype = matrix.dtype(),
          .shape = {matrix.size(1), matrix.size(0)},
          .bytes = [matrix] {
            std::vector<std::byte> transposed(matrix.size_bytes());
            transpose_bytes(matrix.bytes(), matrix.size(0), dtype_bytes(matrix.dtype()),
                            transposed);
            return transposed;
          }};
}

void write_matrices(std::vector<WrittenMatrix> matrices, const std::filesystem::path& path,
                    std::string_view format) {
  // Wider elements first, so that each tensor is aligned, as the safetensors library writes them.
  std::ranges::stable_sort(matrices, std::ranges::greater(),
                           [](const WrittenMatrix& matrix) { return dtype_bytes(matrix.dtype); });
  SafetensorsWriter writer(path, format);
  for (const WrittenMatrix& matrix : matrices) {
    writer.add(matrix.name, safetensors_dtype_name(matrix.dtype), matrix.shape);
  }
  for (const WrittenMatrix& matrix : matrices) writer.write(matrix.name, matrix.bytes());
  writer.finish();
}

double alpha_to_write(const LoraPair& pair) {
  return alpha_gives_scale(pair) ? pair.alpha
                                 : double{pair.scale} * static_cast<double>(pair.rank());
}

double scale_to_write(const LoraPair& pair) {
  return alpha_gives_scale(pair) ? pair.alpha / static_cast<double>(pair.rank()) : pair.scale;
}

void write_number(JsonWriter& json, double value) {
  constexpr double kExact = 1e15;  // integers below are exact
  if (value == std::floor(value) && std::abs(value) < kExact) {
    json.integer(static_cast<int64_t>(value));
  } else {
    json.number(value);
  }
}

}  // namespace paceline
