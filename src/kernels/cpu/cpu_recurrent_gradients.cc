#include "kernels/cpu/cpu_recurrent_gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/divide_up.h"
#include "base/error.h"
#include "kernels/cpu/row_split.h"

namespace paceline {
namespace {

constexpr int64_t kMostGradientTaps = 8;
// Value heads of a key head that one task computes, and whose shares of its gradients it adds up.
constexpr int64_t kPartHeads = 8;
// Channels of a scan that one task computes, and whose shares of the gradients of b and c it adds
// up.
constexpr int64_t kPartChannels = 128;
// The cost of a gate's gradient, in elements of cheaper operations.
constexpr int64_t kGateGradientElements = 16;

// The x whose log(1 + exp(x)) is y.
float softplus_inverse(float y) {
  const auto value = double{y};
  return value > 0.0 ? static_cast<float>(value + std::log(-std::expm1(-value)))
                     : -std::numeric_limits<float>::infinity();
}

// Some neighbouring value heads of a key head.
struct HeadPart {
  int64_t key_head;
  int64_t first_head;
  int64_t num_heads;
  Tensor dq, dk;  // [rows, key_dim], of these heads
};

std::vector<HeadPart> head_parts(const DeltaShape& shape, const DeltaGradients& out,
                                 const Tensor& partials) {
  const int64_t group = shape.value_heads / shape.key_heads;
  const int64_t rows = out.dq.size(0), width = shape.key_dim;
  std::vector<HeadPart> parts;
  for (int64_t head = 0; head < shape.value_heads; head += parts.back().num_heads) {
    const int64_t key_head = head / group;
    HeadPart part{.key_head = key_head,
                  .first_head = head,
                  .num_heads = std::min(kPartHeads, group - head % group)};
    if (group <= kPartHeads) {
      part.dq =
          out.dq.as_strided({rows, width}, {out.dq.stride(0), 1}, key_head * out.dq.stride(1));
      part.dk =
          out.dk.as_strided({rows, width}, {out.dk.stride(0), 1}, key_head * out.dk.stride(1));
    } else {
      const int64_t first = 2 * std::ssize(parts) * rows * width;
      part.dq = partials.as_strided({rows, width}, {width, 1}, first);
      part.dk = partials.as_strided({rows, width}, {width, 1}, first + rows * width);
    }
    parts.push_back(part);
  }
  return parts;
}

DeltaGradientTask gradient_task(const DeltaShape& shape, const DeltaGradientInputs& in,
                                const SequenceRows& sequence, const HeadPart& part, int64_t head,
                                const DeltaGradients& out) {
  const int64_t row = sequence.first_row;
  const auto at = [row](const Tensor& heads, int64_t index) {
    return heads.row<float>(row) + index * heads.stride(1);
  };
  const DeltaInputs& forward = in.forward;
  return {.corrects = shape.corrects,
          .key_dim = shape.key_dim,
          .value_dim = shape.value_dim,
          .num_rows = sequence.num_rows,
          .q = at(forward.q, part.key_head),
          .q_stride = forward.q.stride(0),
          .k = at(forward.k, part.key_head),
          .k_stride = forward.k.stride(0),
          .v = at(forward.v, head),
          .v_stride = forward.v.stride(0),
          .log_decay = at(forward.log_decay, head),
          .log_decay_stride = forward.log_decay.stride(0),
          .beta = at(forward.beta, head),
          .beta_stride = forward.beta.stride(0),
          .skip = forward.skip != nullptr ? forward.skip->elements<float>()[head] : 0.0f,
          .dout = at(in.dout, head),
          .dout_stride = in.dout.stride(0),
          .adds_keys = head > part.first_head,
          .dq = part.dq.row<float>(row),
          .dq_stride = part.dq.stride(0),
          .dk = part.dk.row<float>(row),
          .dk_stride = part.dk.stride(0),
          .dv = at(out.dv, head),
          .dv_stride = out.dv.stride(0),
          .dlog_decay = at(out.dlog_decay, head),
          .dlog_decay_stride = out.dlog_decay.stride(0),
          .dbeta = at(out.dbeta, head),
          .dbeta_stride = out.dbeta.stride(0)};
}

// The task of the channels from `first` on, but for its sums over channels and scratch.
ScanGradientTask scan_gradient_task(const ScanShape& shape, const ScanGradientInputs& in,
                                    const SequenceRows& sequence, int64_t first,
                                    const ScanGradients& out) {
  const int64_t row = sequence.first_row;
  const ScanInputs& forward = in.forward;
  return {.count = std::min(kPartChannels, shape.channels - first),
          .state_size = shape.state_size,
          .num_rows = sequence.num_rows,
          .x = forward.x.row<float>(row) + first,
          .x_stride = forward.x.stride(0),
          .steps = forward.steps.row<float>(row) + first,
          .steps_stride = forward.steps.stride(0),
          .b = forward.b.row<float>(row),
          .b_stride = forward.b.stride(0),
          .c = forward.c.row<float>(row),
          .c_stride = forward.c.stride(0),
          .rates = forward.rates.elements<float>() + first,
          .rates_stride = forward.rates.stride(0),
          .skip = forward.skip.elements<float>() + first,
          .dout = in.dout.row<float>(row) + first,
          .dout_stride = in.dout.stride(0),
          .dx = out.dx.row<float>(row) + first,
          .dx_stride = out.dx.stride(0),
          .dsteps = out.dsteps.row<float>(row) + first,
          .dsteps_stride = out.dsteps.stride(0)};
}

}  // namespace

void CpuRecurrentGradients::do_short_convolution_gradient(const ConvolutionShape& shape,
                                                          const Tensor& taps, const Tensor& dout,
                                                          std::span<const SequenceRows> sequences,
                                                          const Tensor& dx) {
  PL_CHECK(shape.taps <= kMostGradientTaps, "a short convolution has at most 8 taps");
  for (const SequenceRows& sequence : sequences) {
    split_rows(threads_, sequence.num_rows, shape.channels * shape.taps, [&](int64_t row) {
      std::array<const float*, kMostGradientTaps> rows{};
      for (int64_t j = 0; j < std::min(shape.taps, sequence.num_rows - row); ++j) {
        rows[static_cast<size_t>(j)] = dout.row<float>(sequence.first_row + row + j);
      }
      kernels_.convolve({.rows = rows.data(),
                         .taps = taps.row<float>(shape.taps - 1),
                         .taps_stride = -taps.stride(0),
                         .num_taps = shape.taps,
                         .count = shape.channels,
                         .out = dx.row<float>(sequence.first_row + row)});
    });
  }
}

void CpuRecurrentGradients::do_decay_gates_gradient(const DecayGatesInputs& in, const Tensor& dx) {
  const int64_t heads = dx.size(1);
  const float low = softplus_inverse(in.range.low), high = softplus_inverse(in.range.high);
  split_rows(threads_, dx.size(0), heads * kGateGradientElements, [&](int64_t row) {
    kernels_.decay_gates_gradient({.x = in.x.row<float>(row),
                                   .bias = in.bias.elements<float>(),
                                   .rates = in.rates.elements<float>(),
                                   .low = low,
                                   .high = high,
                                   .dout = in.dout.row<float>(row),
                                   .width = heads,
                                   .dx = dx.row<float>(row)});
  });
}

void CpuRecurrentGradients::do_delta_rule_gradient(const DeltaShape& shape,
                                                   const DeltaGradientInputs& in,
                                                   std::span<const SequenceRows> sequences,
                                                   const DeltaGradients& out) {
  const int64_t group = shape.value_heads / shape.key_heads;
  const int64_t parts_of_key = divide_up(group, kPartHeads), width = shape.key_dim;
  const int64_t rows = out.dq.size(0), num_partials = parts_of_key * shape.key_heads;
  Tensor partials;
  if (parts_of_key > 1) {
    const int64_t count = 2 * num_partials * rows * width;
    partials = Tensor(key_parts_.reserve_as<float>(count), DType::f32, {count});
  }
  const std::vector<HeadPart> parts = head_parts(shape, out, partials);
  int64_t longest = 0;
  for (const SequenceRows& sequence : sequences) longest = std::max(longest, sequence.num_rows);
  const int64_t scratch = kernels_.delta_gradient_scratch(width, shape.value_dim, longest);
  auto* const all = thread_scratch_.reserve_as<float>(scratch * threads_.num_threads());
  const int64_t num_parts = std::ssize(parts);
  threads_.parallel_for(
      num_parts * std::ssize(sequences), 1, [&](int64_t begin, int64_t end, int thread) {
        for (int64_t i = begin; i < end; ++i) {
          const HeadPart& part = parts[static_cast<size_t>(i % num_parts)];
          for (int64_t head = part.first_head; head < part.first_head + part.num_heads; ++head) {
            DeltaGradientTask task = gradient_task(
                shape, in, sequences[static_cast<size_t>(i / num_parts)], part, head, out);
            task.scratch = all + thread * scratch;
            kernels_.delta_rule_gradient(task);
          }
        }
      });
  if (parts_of_key == 1) return;
  for (const SequenceRows& sequence : sequences) {
    split_rows(threads_, sequence.num_rows, num_partials * width, [&](int64_t index) {
      const int64_t row = sequence.first_row + index;
      for (size_t i = 0; i < parts.size(); ++i) {
        const HeadPart& part = parts[i];
        const bool is_first = i == 0 || parts[i - 1].key_head != part.key_head;
        for (const auto& [from, to] : {std::pair{&part.dq, &out.dq}, {&part.dk, &out.dk}}) {
          float* const sums = to->row<float>(row) + part.key_head * to->stride(1);
          if (is_first) {
            std::copy_n(from->row<float>(row), width, sums);
          } else {
            kernels_.add(sums, from->row<float>(row), width, sums);
          }
        }
      }
    });
  }
}

// Each task leaves its channels' shares of db and dc in parts [parts][rows][state_size] of both,
// and those of its sequence in dlog_rates in [sequences][state_size, channels]; then these are
// added.
void CpuRecurrentGradients::do_selective_scan_gradient(const ScanShape& shape,
                                                       const ScanGradientInputs& in,
                                                       std::span<const SequenceRows> sequences,
                                                       const ScanGradients& out) {
  const int64_t rows = in.dout.size(0), size = shape.state_size;
  const int64_t num_parts = divide_up(shape.channels, kPartChannels);
  const int64_t part_elements = rows * size, rate_elements = size * shape.channels;
  float* const db = channel_parts_.reserve_as<float>(2 * num_parts * part_elements);
  float* const dc = db + num_parts * part_elements;
  float* const drates = out.dlog_rates == nullptr
                            ? nullptr
                            : rate_parts_.reserve_as<float>(std::ssize(sequences) * rate_elements);
  int64_t longest = 0;
  for (const SequenceRows& sequence : sequences) longest = std::max(longest, sequence.num_rows);
  const int64_t scratch = kernels_.scan_gradient_scratch(size, longest);
  auto* const all = thread_scratch_.reserve_as<float>(scratch * threads_.num_threads());
  threads_.parallel_for(
      num_parts * std::ssize(sequences), 1, [&](int64_t begin, int64_t end, int thread) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t part = i % num_parts, index = i / num_parts;
          const int64_t first = part * kPartChannels;
          const SequenceRows& sequence = sequences[static_cast<size_t>(index)];
          ScanGradientTask task = scan_gradient_task(shape, in, sequence, first, out);
          const int64_t sums = part * part_elements + sequence.first_row * size;
          task.db = db + sums;
          task.dc = dc + sums;
          if (drates != nullptr) task.dlog_rates = drates + index * rate_elements + first * size;
          task.scratch = all + thread * scratch;
          kernels_.selective_scan_gradient(task);
        }
      });
  for (const SequenceRows& sequence : sequences) {
    split_rows(threads_, sequence.num_rows, 2 * num_parts * size, [&](int64_t index) {
      const int64_t row = sequence.first_row + index;
      for (const auto& [from, to] : {std::pair{db, &out.db}, {dc, &out.dc}}) {
        float* const sums = to->row<float>(row);
        std::copy_n(from + row * size, size, sums);
        for (int64_t part = 1; part < num_parts; ++part) {
          kernels_.add(sums, from + part * part_elements + row * size, size, sums);
        }
      }
    });
  }
  if (drates == nullptr) return;
  for (int64_t index = 0; index < std::ssize(sequences); ++index) {
    if (sequences[static_cast<size_t>(index)].num_rows == 0) continue;
    for (int64_t first = 0; first < shape.channels; first += kPartChannels) {
      const int64_t count = std::min(kPartChannels, shape.channels - first);
      const float* const part = drates + index * rate_elements + first * size;  // [size][count]
      for (int64_t n = 0; n < size; ++n) {
        float* const sums = out.dlog_rates->row<float>(n) + first;
        kernels_.add(sums, part + n * count, count, sums);
      }
    }
  }
}

}  // namespace paceline
