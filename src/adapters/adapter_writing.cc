#include "adapters/adapter_writing.h"

#include <algorithm>
#include <cmath>

#include "weights/safetensors_writer.h"

namespace paceline {
namespace {

struct WrittenMatrix {
  std::string name;
  const Tensor* view = nullptr;
};

bool alpha_gives_scale(const LoraPair& pair) {
  return static_cast<float>(pair.alpha / static_cast<double>(pair.rank())) == pair.scale;
}

Extents written_shape(const Tensor& matrix, bool transposed) {
  return transposed ? Extents{matrix.size(1), matrix.size(0)} : matrix.shape();
}

}  // namespace

void write_matrices(const Adapter& adapter, const std::filesystem::path& path,
                    const MatrixFile& file) {
  std::vector<WrittenMatrix> matrices;
  for (const LoraPair& pair : adapter.pairs()) {
    matrices.push_back({file.name_of(pair, LoraSide::a), &pair.a.view});
    matrices.push_back({file.name_of(pair, LoraSide::b), &pair.b.view});
  }
  // Wider elements first, so that each tensor is aligned, as the safetensors library writes them.
  std::ranges::stable_sort(matrices, std::ranges::greater(), [](const WrittenMatrix& matrix) {
    return dtype_bytes(matrix.view->dtype());
  });
  SafetensorsWriter writer(path, file.format);
  for (const auto& [name, view] : matrices) {
    writer.add(name, safetensors_dtype_name(view->dtype()), written_shape(*view, file.transposed));
  }
  std::vector<std::byte> transposed;
  for (const auto& [name, view] : matrices) {
    std::span<const std::byte> bytes = view->bytes();
    if (file.transposed) {
      transposed.resize(bytes.size());
      transpose_bytes(bytes, view->size(0), dtype_bytes(view->dtype()), transposed);
      bytes = transposed;
    }
    writer.write(name, bytes);
  }
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
