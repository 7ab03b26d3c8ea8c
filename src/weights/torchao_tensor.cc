#include "weights/torchao_tensor.h"

#include <array>

#include "base/json_document.h"

namespace paceline {
namespace {

Extents read_whole_shape(const DocumentCursor& field) {
  std::array<int64_t, kMaxRank> sizes{};
  size_t rank = 0;
  for (const DocumentNode item : field.array()) {
    if (rank == sizes.size()) field.mismatch("at most 6 sizes");
    sizes[rank] = field.below(rank, item).integer();
    if (sizes[rank] < 1) field.mismatch("sizes of at least 1");
    ++rank;
  }
  return Extents(std::span<const int64_t>(sizes.data(), rank));
}

// A dtype is {"_type": "torch.dtype", "_data": "bfloat16"}, or a name that torch doesn't have.
std::string read_element_name(const DocumentCursor& field) {
  return std::string(field.is_string() ? field.string() : field.at("_data").string());
}

}  // namespace

TorchaoTensor TorchaoTensor::parse(std::string_view json, std::string_view where) {
  const JsonDocument document(std::string(json), std::string(where), ErrorCode::corrupt,
                              HugeIntegers::refused);
  const DocumentCursor root = document.root();
  TorchaoTensor tensor{.type = std::string(root.at("_type").string())};
  const auto data = root.find("_data");
  if (!data) return tensor;
  if (const auto shape = data->find("shape")) tensor.shape = read_whole_shape(*shape);
  if (const auto element = data->find("elem_dtype")) tensor.element = read_element_name(*element);
  const auto swizzled = data->find("is_swizzled_scales");
  tensor.has_swizzled_scales = swizzled && !swizzled->is_null() && swizzled->boolean();
  return tensor;
}

}  // namespace paceline
