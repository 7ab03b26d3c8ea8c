#include "trainer/model_result.h"

#include "weights/safetensors_writer.h"

namespace paceline {

void ModelResult::write(const std::filesystem::path& directory) const {
  base_.write_files(directory);
  SafetensorsWriter writer(directory / "model.safetensors");
  const DType dtype = weights_.dtype();
  for (const TrainedParameter* const one : weights_.parameters()) {
    writer.add(base_.weight_name(one->path()), safetensors_dtype_name(dtype), one->value().shape());
  }
  for (const TrainedParameter* const one : weights_.parameters()) {
    const OwnedTensor rounded = allocate_tensor(memory_, dtype, one->value().shape());
    copy_elements(one->value(), rounded.view);
    writer.write(base_.weight_name(one->path()), rounded.view.bytes());
  }
  writer.finish();
}

}  // namespace paceline
