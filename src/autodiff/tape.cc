#include "autodiff/tape.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "autodiff/elementwise.h"
#include "autodiff/lines.h"
#include "base/error.h"

namespace paceline::autodiff {
namespace {

bool is_plain_f32(const Array& array) {
  return array.traced() == nullptr && array.dtype() == DType::f32 && array.tensor().is_contiguous();
}

// sum += gradient where the CPU can't reach the elements (Context::add).
void accumulate_on_device(Array& sum, const Array& gradient) {
  PL_CHECK(is_plain_f32(sum) && is_plain_f32(gradient), "gradients of contiguous float32 arrays");
  if (sum.is_exclusive()) {
    const Tensor to = sum.writable();
    return sum.context().add(to, gradient.tensor(), to);
  }
  Array apart(sum.context(), DType::f32, sum.shape(), Contents::undefined);
  sum.context().add(sum.tensor(), gradient.tensor(), apart.writable());
  sum = std::move(apart);
}

// sum += gradient. Works in place if no other array shares the sum's elements.
void accumulate(Array& sum, const Array& gradient) {
  if (!sum.is_defined()) {
    sum = gradient;
  } else if (sum.context().add) {
    accumulate_on_device(sum, gradient);
  } else if (is_plain_f32(sum) && is_plain_f32(gradient) && sum.is_exclusive()) {
    float* to = sum.writable().elements<float>();
    const float* from = gradient.tensor().elements<float>();
    for_parts(sum.context(), sum.num_elements(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    });
  } else {
    sum = add(sum, gradient);
  }
}

}  // namespace

Array Tape::follow(const Array& value) {
  return Array(
      Traced{.level = level_, .value = value, .tape = shared_from_this(), .slot = num_slots_++});
}

Arrays Tape::record(std::unique_ptr<const TapeStep> step, const Arrays& inputs,
                    const Arrays& outputs) {
  Record record{.step = std::move(step),
                .input_slots = {},
                .inputs = {},
                .first_output = num_slots_,
                .num_outputs = outputs.size()};
  for (const Array& input : inputs) {
    const bool is_followed = input.traced() != nullptr && input.traced()->level == level_;
    record.input_slots.push_back(is_followed ? input.traced()->slot : -1);
    record.inputs.push_back(input.without_elements());
  }
  records_.push_back(std::move(record));
  Arrays followed;
  for (const Array& output : outputs) followed.push_back(follow(output));
  return followed;
}

void Tape::check_usable() const {
  if (std::this_thread::get_id() != thread_) {
    throw Error(ErrorCode::invalid,
                "vjp: an array of its function is used by another thread: expected the thread that "
                "called vjp");
  }
  if (is_closed_) {
    throw Error(ErrorCode::invalid,
                "vjp: an array of its function is used after it has returned: expected arrays that "
                "the function returns, or those given to vjp");
  }
  if (num_pauses_ > 0) {
    throw Error(ErrorCode::invalid,
                "checkpoint: the function reads an array whose gradient is wanted and that isn't "
                "among its inputs: expected it as an input");
  }
}

void Tape::close() {
  is_closed_ = true;
  records_.clear();
  cotangents_.clear();
}

void Tape::add_gradient(int64_t slot, const Array& input, const Array& gradient) {
  if (slot < 0 || !gradient.is_defined()) return;
  PL_CHECK(gradient.shape() == input.shape(),
           fmt::format("a gradient of shape {} of an input of shape {}",
                       to_string(gradient.shape()), to_string(input.shape())));
  accumulate(cotangents_[static_cast<size_t>(slot)], convert(gradient, input.dtype()));
}

void Tape::pull_back_step(const Record& record) {
  Arrays of_outputs;
  bool any = false;
  for (size_t i = 0; i < record.num_outputs; ++i) {
    Array& cotangent = cotangents_[static_cast<size_t>(record.first_output) + i];
    any = any || cotangent.is_defined();
    of_outputs.push_back(std::exchange(cotangent, Array()));
  }
  if (!any) return;
  const Arrays gradients = record.step->pull_back(of_outputs);
  PL_CHECK(gradients.size() == record.inputs.size(), "a vjp rule with a gradient for each input");
  of_outputs.clear();
  for (size_t i = 0; i < gradients.size(); ++i) {
    add_gradient(record.input_slots[i], record.inputs[i], gradients[i]);
  }
}

Arrays Tape::pull_back(const Arrays& outputs, const Arrays& cotangents, size_t num_primals) {
  cotangents_.assign(static_cast<size_t>(num_slots_), Array());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Traced* traced = outputs[i].traced();
    if (traced == nullptr || traced->level != level_) continue;
    add_gradient(traced->slot, traced->value, cotangents[i]);
  }
  while (!records_.empty()) {
    const Record record = std::move(records_.back());
    records_.pop_back();
    pull_back_step(record);
  }
  Arrays gradients(cotangents_.begin(),
                   cotangents_.begin() + static_cast<std::ptrdiff_t>(num_primals));
  close();
  return gradients;
}

uint64_t next_level() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

const Traced* innermost(const Arrays& arrays) {
  const Traced* found = nullptr;
  for (const Array& array : arrays) {
    const Traced* traced = array.traced();
    if (traced != nullptr && (found == nullptr || traced->level > found->level)) found = traced;
  }
  return found;
}

Array strip(const Array& array, uint64_t level) {
  return array.traced() != nullptr && array.traced()->level == level ? array.traced()->value
                                                                     : array;
}

Arrays strip(const Arrays& arrays, uint64_t level) {
  Arrays stripped;
  for (const Array& array : arrays) stripped.push_back(strip(array, level));
  return stripped;
}

}  // namespace paceline::autodiff
