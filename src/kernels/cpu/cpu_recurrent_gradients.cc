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

}  // namespace paceline
