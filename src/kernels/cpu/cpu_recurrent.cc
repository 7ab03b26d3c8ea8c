#include "kernels/cpu/cpu_recurrent.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/divide_up.h"
#include "base/error.h"
#include "kernels/cpu/row_split.h"

namespace paceline {
namespace {

constexpr int64_t kMostTaps = 8;
// Channels of one task of a convolution: their rings stay in the first-level cache.
constexpr int64_t kTaskChannels = 512;
// The most value heads of one task of the delta rule, however many share their keys: what tasks
// compute of these each for themselves stays small beside the heads'.
constexpr int64_t kTaskHeads = 8;
// Channels of one task of a selective scan.
constexpr int64_t kScanChannels = 64;
// The cost of a gate, in elements of cheaper operations.
constexpr int64_t kGateElements = 64;

// Some channels of one slice's convolution.
class SliceChannels {
 public:
  SliceChannels(const ConvolutionShape& shape, const StateSlices& slices, const StateSlice& slice,
                const Tensor& x, const StateMemory& memory, int64_t first, int64_t count)
      : shape_(shape),
        slice_(slice),
        saves_(slices.saves_of(slice)),
        x_(x),
        memory_(memory),
        first_(first),
        count_(count) {}

  void convolve(const KernelTable& kernels, const ConvolutionWeights& weights, const Tensor& out) {
    std::array<const float*, kMostTaps> rows{};
    for (int64_t row = 0; row < slice_.num_rows; ++row) {
      const int64_t position = slice_.first_position + row;
      for (int64_t j = 0; j < shape_.taps; ++j) {
        rows[static_cast<size_t>(j)] = inputs_at(position - shape_.taps + 1 + j);
      }
      kernels.convolve(
          {.rows = rows.data(),
           .taps = weights.taps.elements<float>() + first_,
           .taps_stride = weights.taps.stride(0),
           .bias = weights.bias != nullptr ? weights.bias->elements<float>() + first_ : nullptr,
           .num_taps = shape_.taps,
           .count = count_,
           .out = out.row<float>(slice_.first_row + row) + first_});
    }
  }

  // Writes what the blocks, and those of saves, keep of the slice's inputs.
  void keep_inputs() const {
    const int64_t end = slice_.first_position + slice_.num_rows, open = chunk_of(end);
    for (const StateSave& save : saves_) keep_before(save.position, save.block);
    if (open > chunk_of(slice_.first_position)) keep_before(open, slice_.block);
    for (int64_t p = std::max(open, slice_.first_position); p < end; ++p) {
      copy(inputs_at(p), open_row(open, p));
    }
  }

 private:
  static int64_t chunk_of(int64_t position) { return position / kStateChunk * kStateChunk; }

  void keep_before(int64_t chunk, int32_t block) const {
    for (int64_t p = chunk - shape_.taps + 1; p < chunk; ++p) {
      copy(inputs_at(p), state_row(block, chunk, p));
    }
  }
  void copy(const float* from, float* to) const {
    std::memcpy(to, from, static_cast<size_t>(count_) * sizeof(float));
  }
  float* state_row(int32_t block, int64_t chunk, int64_t position) const {
    return memory_.states.row<float>(block) + shape_.state_begin(chunk, position) + first_;
  }
  float* open_row(int64_t chunk, int64_t position) const {
    return memory_.open_rows.row<float>(slice_.open_block) + shape_.open_begin(chunk, position) +
           first_;
  }
  const float* inputs_at(int64_t position) const {
    if (position < 0) return nullptr;
    if (position >= slice_.first_position) {
      return x_.row<float>(slice_.first_row + position - slice_.first_position) + first_;
    }
    const int64_t chunk = chunk_of(slice_.first_position);
    return position < chunk ? state_row(slice_.block, chunk, position) : open_row(chunk, position);
  }

  const ConvolutionShape& shape_;
  const StateSlice& slice_;
  std::span<const StateSave> saves_;
  const Tensor& x_;
  const StateMemory& memory_;
  int64_t first_;
  int64_t count_;
};

// An element of a block of states of either type.
void* state_at(const Tensor& states, int64_t block, int64_t element) {
  const int64_t offset = block * states.stride(0) + element;
  return static_cast<std::byte*>(states.raw()) +
         static_cast<size_t>(offset) * dtype_bytes(states.dtype());
}

// Where the matrix of a value head begins in a state.
int64_t first_of_head(const DeltaShape& shape, int64_t head) {
  return head * shape.key_dim * shape.padded_value();
}

// The task of some value heads of a key head, but for its saves and scratch.
DeltaTask task_of(const DeltaShape& shape, const DeltaInputs& in, const StateSlice& slice,
                  int64_t head, int64_t num_heads, const StateMemory& memory, const Tensor& out) {
  const int64_t key_head = head / (shape.value_heads / shape.key_heads);
  const int64_t row = slice.first_row;
  float* const open = memory.open_rows.row<float>(slice.open_block);
  return {.corrects = shape.corrects,
          .channel_decay = shape.channel_decay,
          .key_dim = shape.key_dim,
          .value_dim = shape.value_dim,
          .padded_key = shape.padded_key(),
          .padded_value = shape.padded_value(),
          .num_heads = num_heads,
          .num_rows = slice.num_rows,
          .first_position = slice.first_position,
          .q = in.q.row<float>(row) + key_head * in.q.stride(1),
          .q_stride = in.q.stride(0),
          .k = in.k.row<float>(row) + key_head * in.k.stride(1),
          .k_stride = in.k.stride(0),
          .v = in.v.row<float>(row) + head * in.v.stride(1),
          .v_stride = in.v.stride(0),
          .v_head_stride = in.v.stride(1),
          .log_decay = in.log_decay.row<float>(row) + head * shape.head_decays(),
          .log_decay_stride = in.log_decay.stride(0),
          .beta = in.beta.row<float>(row) + head,
          .beta_stride = in.beta.stride(0),
          .skip = in.skip != nullptr ? in.skip->elements<float>() + head : nullptr,
          .out = out.row<float>(row) + head * out.stride(1),
          .out_stride = out.stride(0),
          .out_head_stride = out.stride(1),
          .states = state_at(memory.states, slice.block, first_of_head(shape, head)),
          .keys = open + key_head * shape.padded_key(),
          .key_stride = shape.key_heads * shape.padded_key(),
          .updates = open + shape.updates_begin() + head * shape.padded_value(),
          .update_stride = shape.value_heads * shape.padded_value(),
          .decays = open + shape.decays_begin() + head * shape.padded_decay(),
          .decay_stride = shape.value_heads * shape.padded_decay()};
}

// Writes the slice's keys of the chunk that it leaves open, which tasks share.
void keep_keys(const DeltaShape& shape, const Tensor& k, const StateSlice& slice,
               const Tensor& open_rows) {
  const int64_t end = slice.first_position + slice.num_rows;
  const int64_t open = end / kStateChunk * kStateChunk;
  float* const kept = open_rows.row<float>(slice.open_block);
  for (int64_t p = std::max(open, slice.first_position); p < end; ++p) {
    const float* const keys = k.row<float>(slice.first_row + p - slice.first_position);
    for (int64_t head = 0; head < shape.key_heads; ++head) {
      float* const to = kept + ((p - open) * shape.key_heads + head) * shape.padded_key();
      std::copy_n(keys + head * k.stride(1), shape.key_dim, to);
      std::fill(to + shape.key_dim, to + shape.padded_key(), 0.0f);
    }
  }
}

// The task of some channels, but for its saves and scratch.
ScanTask scan_task_of(const ScanShape& shape, const ScanInputs& in, const StateSlice& slice,
                      int64_t first, const StateMemory& memory, const Tensor& out) {
  const int64_t row = slice.first_row;
  float* const open = memory.open_rows.row<float>(slice.open_block);
  return {.count = std::min(kScanChannels, shape.channels - first),
          .state_size = shape.state_size,
          .num_rows = slice.num_rows,
          .first_position = slice.first_position,
          .x = in.x.row<float>(row) + first,
          .x_stride = in.x.stride(0),
          .steps = in.steps.row<float>(row) + first,
          .steps_stride = in.steps.stride(0),
          .b = in.b.row<float>(row),
          .b_stride = in.b.stride(0),
          .c = in.c.row<float>(row),
          .c_stride = in.c.stride(0),
          .rates = in.rates.elements<float>() + first,
          .rates_stride = in.rates.stride(0),
          .skip = in.skip.elements<float>() + first,
          .out = out.row<float>(row) + first,
          .out_stride = out.stride(0),
          .states = state_at(memory.states, slice.block, first),
          .kept_steps = open + first,
          .kept_inputs = open + shape.inputs_begin() + first,
          .kept_stride = shape.padded_channels(),
          .kept_b = open + shape.b_begin(),
          .kept_b_stride = shape.padded_state()};
}

// Writes the slice's b of the chunk that it leaves open, which tasks share, to its open rows.
void keep_b(const ScanShape& shape, const Tensor& b, const StateSlice& slice,
            const Tensor& open_rows) {
  const int64_t end = slice.first_position + slice.num_rows;
  const int64_t open = end / kStateChunk * kStateChunk;
  float* const kept = open_rows.row<float>(slice.open_block) + shape.b_begin();
  for (int64_t p = std::max(open, slice.first_position); p < end; ++p) {
    std::copy_n(b.row<float>(slice.first_row + p - slice.first_position), shape.state_size,
                kept + (p - open) * shape.padded_state());
  }
}

}  // namespace

void CpuRecurrent::do_short_convolution(const ConvolutionShape& shape, const Tensor& x,
                                        const ConvolutionWeights& weights,
                                        const StateSlices& slices, const StateMemory& memory,
                                        const Tensor& out) {
  PL_CHECK(shape.taps <= kMostTaps, "a short convolution has at most 8 taps");
  const int64_t parts = divide_up(shape.channels, kTaskChannels);
  threads_.parallel_for(
      parts * slices.slices.size(), 1, [&](int64_t begin, int64_t end, int /*thread*/) {
        for (int64_t task = begin; task < end; ++task) {
          const StateSlice& slice = slices.slices.host()[static_cast<size_t>(task / parts)];
          const int64_t first = task % parts * kTaskChannels;
          SliceChannels channels(shape, slices, slice, x, memory, first,
                                 std::min(kTaskChannels, shape.channels - first));
          channels.convolve(kernels_, weights, out);
          channels.keep_inputs();
        }
      });
}

void CpuRecurrent::do_decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates,
                                  const GateRange& range, const Tensor& out) {
  const int64_t heads = x.size(1);
  split_rows(threads_, x.size(0), heads * kGateElements, [&](int64_t row) {
    kernels_.decay_gates({.x = x.row<float>(row),
                          .bias = bias.elements<float>(),
                          .rates = rates.elements<float>(),
                          .low = range.low,
                          .high = range.high,
                          .width = heads,
                          .out = out.row<float>(row)});
  });
}

void CpuRecurrent::do_multiply(const Tensor& x, const Tensor& y, const Tensor& out) {
  split_rows(threads_, x.size(0), x.size(1), [&](int64_t row) {
    kernels_.multiply(x.row<float>(row), y.row<float>(row), x.size(1), out.row<float>(row));
  });
}

void CpuRecurrent::do_delta_rule(const DeltaShape& shape, const DeltaInputs& inputs,
                                 const StateSlices& slices, const StateMemory& memory,
                                 const Tensor& out) {
  const int64_t group = shape.value_heads / shape.key_heads;
  const int64_t task_heads = std::min(group, kTaskHeads);
  const int64_t num_parts = divide_up(group, task_heads) * shape.key_heads;
  tasks_.clear();
  saves_.clear();
  saves_.reserve(slices.saves.size() * static_cast<size_t>(num_parts));  // tasks point into it
  for (const StateSlice& slice : slices.slices.host()) {
    int64_t num_heads = 0;
    for (int64_t head = 0; head < shape.value_heads; head += num_heads) {
      num_heads = std::min(task_heads, group - head % group);
      DeltaTask task = task_of(shape, inputs, slice, head, num_heads, memory, out);
      task.saves = saves_.data() + saves_.size();
      task.num_saves = slice.num_saves;
      for (const StateSave& save : slices.saves_of(slice)) {
        saves_.push_back(
            {.position = save.position,
             .states = state_at(memory.states, save.block, first_of_head(shape, head))});
      }
      tasks_.push_back(task);
    }
  }
  const int64_t scratch = kernels_.delta_scratch(shape.padded_key(), shape.padded_value());
  auto* const all = thread_scratch_.reserve_as<float>(scratch * threads_.num_threads());
  const bool is_bf16 = memory.states.dtype() == DType::bf16;
  const auto run = is_bf16 ? kernels_.delta_rule_bf16 : kernels_.delta_rule;
  threads_.parallel_for(std::ssize(tasks_), 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      DeltaTask& task = tasks_[static_cast<size_t>(i)];
      task.scratch = all + thread * scratch;
      run(task);
    }
  });
  for (const StateSlice& slice : slices.slices.host())
    keep_keys(shape, inputs.k, slice, memory.open_rows);
}

void CpuRecurrent::do_selective_scan(const ScanShape& shape, const ScanInputs& inputs,
                                     const StateSlices& slices, const StateMemory& memory,
                                     const Tensor& out) {
  const int64_t parts = divide_up(shape.channels, kScanChannels);
  scans_.clear();
  saves_.clear();
  saves_.reserve(slices.saves.size() * static_cast<size_t>(parts));  // tasks point into it
  for (const StateSlice& slice : slices.slices.host()) {
    for (int64_t first = 0; first < shape.channels; first += kScanChannels) {
      ScanTask task = scan_task_of(shape, inputs, slice, first, memory, out);
      task.saves = saves_.data() + saves_.size();
      task.num_saves = slice.num_saves;
      for (const StateSave& save : slices.saves_of(slice)) {
        saves_.push_back(
            {.position = save.position, .states = state_at(memory.states, save.block, first)});
      }
      scans_.push_back(task);
    }
  }
  const int64_t scratch = kernels_.scan_scratch(shape.state_size);
  auto* const all = thread_scratch_.reserve_as<float>(scratch * threads_.num_threads());
  const bool is_bf16 = memory.states.dtype() == DType::bf16;
  const auto run = is_bf16 ? kernels_.selective_scan_bf16 : kernels_.selective_scan;
  threads_.parallel_for(std::ssize(scans_), 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      ScanTask& task = scans_[static_cast<size_t>(i)];
      task.scratch = all + thread * scratch;
      run(task);
    }
  });
  for (const StateSlice& slice : slices.slices.host()) {
    keep_b(shape, inputs.b, slice, memory.open_rows);
  }
}

void CpuRecurrent::do_copy_states(const Tensor& blocks, std::span<const BlockMove> moves) {
  const size_t bytes = static_cast<size_t>(blocks.size(1)) * dtype_bytes(blocks.dtype());
  for (const BlockMove& move : moves) {
    std::memmove(state_at(blocks, move.to, 0), state_at(blocks, move.from, 0), bytes);
  }
}

}  // namespace paceline
