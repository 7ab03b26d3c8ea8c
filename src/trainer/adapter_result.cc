#include "trainer/adapter_result.h"

#include <utility>

#include "adapters/peft_directory.h"

namespace paceline {
namespace {

OwnedTensor rounded_copy(const TrainedMatrix& matrix, Memory& memory) {
  OwnedTensor copy = allocate_tensor(memory, matrix.dtype(), matrix.value().shape());
  copy_elements(matrix.value(), copy.view);
  return copy;
}

}  // namespace

Adapter trained_adapter(const LoraSet& loras, const std::string& base_name, Memory& memory) {
  std::vector<LoraPair> pairs;
  for (const LoraPairRef& pair : loras.pairs()) {
    pairs.push_back({.module = pair.module,
                     .a = rounded_copy(*pair.a, memory),
                     .b = rounded_copy(*pair.b, memory),
                     .alpha = pair.shape.alpha,
                     .scale = static_cast<float>(pair.scale)});
  }
  return {base_name, std::move(pairs)};
}

void AdapterResult::write(const std::filesystem::path& directory) const {
  write_peft_files(trained_adapter(loras_, base_name_, memory_), base_, directory);
}

}  // namespace paceline
