#include "weights/forwarding_checkpoint.h"

#include "weights/dequantize.h"

namespace paceline {

const Tensor* UnpackingCheckpoint::find_copy(std::string_view name) const {
  const auto at = copies_.find(name);
  return at == copies_.end() ? nullptr : &at->second.view;
}

const Tensor& UnpackingCheckpoint::keep_copy(std::string_view name, OwnedTensor copy) {
  return copies_.insert_or_assign(std::string(name), std::move(copy)).first->second.view;
}

const Tensor& UnpackingCheckpoint::keep_numbers(std::string_view name, const ValueRows& rows) {
  return keep_copy(name, dequantize(rows, memory_, threads_));
}

void UnpackingCheckpoint::drop_copy(std::string_view name) {
  if (const auto at = copies_.find(name); at != copies_.end()) copies_.erase(at);
}

}  // namespace paceline
