#include "kernels/reference/reference_recurrent.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace paceline {
namespace {

int64_t chunk_of(int64_t position) { return position / kStateChunk * kStateChunk; }

// The inputs of position `position` of a slice: a row of x, or of its blocks; null before 0.
const float* inputs_at(const ConvolutionShape& shape, const StateSlice& slice, const Tensor& x,
                       const StateMemory& memory, int64_t position) {
  if (position < 0) return nullptr;
  if (position >= slice.first_position) {
    return x.row<float>(slice.first_row + position - slice.first_position);
  }
  const int64_t chunk = chunk_of(slice.first_position);
  if (position >= chunk) {
    return memory.open_rows.row<float>(slice.open_block) + shape.open_begin(chunk, position);
  }
  return memory.states.row<float>(slice.block) + shape.state_begin(chunk, position);
}

// An element of states of either type.
double state_element(const Tensor& states, int64_t offset) {
  if (states.dtype() == DType::bf16) return double{to_float(states.elements<BFloat16>()[offset])};
  return double{states.elements<float>()[offset]};
}

void set_state_element(const Tensor& states, int64_t offset, double value) {
  const auto rounded = static_cast<float>(value);
  if (states.dtype() == DType::bf16) {
    states.elements<BFloat16>()[offset] = to_bfloat16(rounded);
  } else {
    states.elements<float>()[offset] = rounded;
  }
}

// One value head of one slice.
class DeltaHead {
 public:
  DeltaHead(const DeltaShape& shape, const DeltaInputs& in, const StateSlices& slices,
            const StateSlice& slice, int64_t head, const StateMemory& memory, const Tensor& out)
      : shape_(shape),
        in_(in),
        slice_(slice),
        saves_(slices.saves_of(slice)),
        head_(head),
        memory_(memory),
        out_(out),
        left_(static_cast<size_t>(shape.key_dim)) {}

  void run(int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      step(p);
      if ((p + 1) % kStateChunk == 0) close(p + 1);
    }
  }

 private:
  float* open() const { return memory_.open_rows.row<float>(slice_.open_block); }
  // Where the head's matrix begins in a block of states.
  int64_t matrix_in(int32_t block) const {
    return block * memory_.states.stride(0) + head_ * shape_.key_dim * shape_.padded_value();
  }
  int64_t key_head() const { return head_ / (shape_.value_heads / shape_.key_heads); }
  float* key_at(int64_t position) const {
    const int64_t row = position % kStateChunk;
    return open() + (row * shape_.key_heads + key_head()) * shape_.padded_key();
  }
  float* update_at(int64_t position) const {
    const int64_t row = position % kStateChunk;
    return open() + shape_.updates_begin() +
           (row * shape_.value_heads + head_) * shape_.padded_value();
  }
  // The logarithms of a position's decays: with one of each channel its own, else their sum from
  // the chunk's start.
  float* decays_at(int64_t position) const {
    const int64_t row = position % kStateChunk;
    return open() + shape_.decays_begin() +
           (row * shape_.value_heads + head_) * shape_.padded_decay();
  }
  // Sets what is left at position `to` of each channel as it was at position `from` of the same
  // chunk, or at the chunk's start if that is the position before it.
  void set_left(int64_t from, int64_t to) {
    if (!shape_.channel_decay) {
      const double before = from < chunk_of(to) ? 0.0 : double{decays_at(from)[0]};
      std::ranges::fill(left_, std::exp(double{decays_at(to)[0]} - before));
      return;
    }
    for (int64_t i = 0; i < shape_.key_dim; ++i) {
      double sum = 0.0;
      for (int64_t p = from + 1; p <= to; ++p) sum += double{decays_at(p)[i]};
      left_[static_cast<size_t>(i)] = std::exp(sum);
    }
  }
  void keep_decays(int64_t position, int64_t row) const {
    const int64_t count = shape_.head_decays();
    const float* const from = in_.log_decay.row<float>(row) + head_ * count;
    std::copy_n(from, count, decays_at(position));
    if (shape_.channel_decay || position % kStateChunk == 0) return;
    decays_at(position)[0] += decays_at(position - 1)[0];
  }
  static const float* head_row(const Tensor& heads, int64_t row, int64_t head) {
    return heads.row<float>(row) + head * heads.stride(1);
  }
  // x . y, of what is left.
  double dot(const float* x, const float* y) const {
    double sum = 0.0;
    for (int64_t i = 0; i < shape_.key_dim; ++i) {
      sum += left_[static_cast<size_t>(i)] * double{x[i]} * double{y[i]};
    }
    return sum;
  }
  // S^T x of what is left, nothing in the first chunk.
  double recall(int64_t position, const float* x, int64_t column) const {
    if (position < kStateChunk) return 0.0;
    const int64_t matrix = matrix_in(slice_.block);
    double sum = 0.0;
    for (int64_t i = 0; i < shape_.key_dim; ++i) {
      sum += left_[static_cast<size_t>(i)] * double{x[i]} *
             state_element(memory_.states, matrix + i * shape_.padded_value() + column);
    }
    return sum;
  }

  void step(int64_t p) {
    const int64_t row = slice_.first_row + p - slice_.first_position;
    const int64_t begin = p / kStateChunk * kStateChunk;
    const float* const q = head_row(in_.q, row, key_head());
    const float* const k = head_row(in_.k, row, key_head());
    std::copy(k, k + shape_.key_dim, key_at(p));
    keep_decays(p, row);
    std::array<double, kStateChunk> of_key{}, of_query{};
    for (int64_t j = begin; j <= p; ++j) {
      set_left(j, p);
      of_key[static_cast<size_t>(j - begin)] = dot(key_at(j), k);
      of_query[static_cast<size_t>(j - begin)] = dot(key_at(j), q);
    }
    set_left(begin - 1, p);
    const double beta = double{in_.beta.row<float>(row)[head_]};
    float* const out = out_.row<float>(row) + head_ * out_.stride(1);
    for (int64_t c = 0; c < shape_.value_dim; ++c) {
      const double value = double{head_row(in_.v, row, head_)[c]};
      double update = value, sum = recall(p, q, c);
      if (in_.skip != nullptr) sum += double{in_.skip->elements<float>()[head_]} * value;
      if (shape_.corrects) update -= recall(p, k, c);
      for (int64_t j = begin; j < p; ++j) {
        if (shape_.corrects) {
          update -= of_key[static_cast<size_t>(j - begin)] * double{update_at(j)[c]};
        }
        sum += of_query[static_cast<size_t>(j - begin)] * double{update_at(j)[c]};
      }
      update_at(p)[c] = static_cast<float>(beta * update);
      sum += of_query[static_cast<size_t>(p - begin)] * double{update_at(p)[c]};
      out[c] = static_cast<float>(sum);
    }
  }

  // The state after the rows below `end`, a chunk's end.
  void close(int64_t end) {
    const int64_t begin = end - kStateChunk, width = shape_.value_dim;
    const int64_t own = matrix_in(slice_.block);
    std::vector<double> sums(static_cast<size_t>(shape_.key_dim * width), 0.0);
    for (int64_t j = begin - 1; j < end; ++j) {  // the state, then the rows
      if (j < 0) continue;
      set_left(j, end - 1);
      for (int64_t i = 0; i < shape_.key_dim; ++i) {
        const double left = left_[static_cast<size_t>(i)];
        for (int64_t c = 0; c < width; ++c) {
          sums[static_cast<size_t>(i * width + c)] +=
              left * (j < begin ? state_element(memory_.states, own + i * shape_.padded_value() + c)
                                : double{key_at(j)[i]} * double{update_at(j)[c]});
        }
      }
    }
    for (int64_t i = 0; i < shape_.key_dim; ++i) {
      for (int64_t c = 0; c < width; ++c) {
        const double sum = sums[static_cast<size_t>(i * width + c)];
        const int64_t at = i * shape_.padded_value() + c;
        set_state_element(memory_.states, own + at, sum);
        for (const StateSave& save : saves_) {
          if (save.position != end) continue;
          set_state_element(memory_.states, matrix_in(save.block) + at, sum);
        }
      }
    }
  }

  const DeltaShape& shape_;
  const DeltaInputs& in_;
  const StateSlice& slice_;
  std::span<const StateSave> saves_;
  int64_t head_;
  const StateMemory& memory_;
  const Tensor& out_;
  std::vector<double> left_;  // of each channel, over the positions of the last set_left()
};

// One channel of one slice.
class ScanChannel {
 public:
  ScanChannel(const ScanShape& shape, const ScanInputs& in, const StateSlices& slices,
              const StateSlice& slice, int64_t channel, const StateMemory& memory,
              const Tensor& out)
      : shape_(shape),
        in_(in),
        slice_(slice),
        saves_(slices.saves_of(slice)),
        channel_(channel),
        memory_(memory),
        out_(out),
        state_(static_cast<size_t>(shape.state_size), 0.0f) {}

  // Positions [begin, end) of one chunk.
  void run(int64_t begin, int64_t end) {
    const int64_t chunk = chunk_of(begin);
    for (int64_t n = 0; chunk > 0 && n < shape_.state_size; ++n) {
      const auto state = state_element(memory_.states, state_offset(slice_.block, n));
      state_[static_cast<size_t>(n)] = static_cast<float>(state);
    }
    for (int64_t p = chunk; p < begin; ++p) advance(p);
    for (int64_t p = begin; p < end; ++p) {
      keep(p);
      advance(p);
      write_out(p);
    }
    if (end % kStateChunk != 0) return;
    write_state(slice_.block);
    for (const StateSave& save : saves_) {
      if (save.position == end) write_state(save.block);
    }
  }

 private:
  int64_t row_of(int64_t position) const {
    return slice_.first_row + position - slice_.first_position;
  }
  int64_t state_offset(int32_t block, int64_t n) const {
    return block * memory_.states.stride(0) + n * shape_.padded_channels() + channel_;
  }
  float* kept(int64_t begin, int64_t width, int64_t position) const {
    return memory_.open_rows.row<float>(slice_.open_block) + begin + position % kStateChunk * width;
  }
  float& step(int64_t p) const { return kept(0, shape_.padded_channels(), p)[channel_]; }
  float& input(int64_t p) const {
    return kept(shape_.inputs_begin(), shape_.padded_channels(), p)[channel_];
  }
  float* b(int64_t p) const { return kept(shape_.b_begin(), shape_.padded_state(), p); }

  void keep(int64_t p) const {
    step(p) = in_.steps.row<float>(row_of(p))[channel_];
    input(p) = step(p) * in_.x.row<float>(row_of(p))[channel_];
    std::copy_n(in_.b.row<float>(row_of(p)), shape_.state_size, b(p));
  }
  void advance(int64_t p) {
    for (int64_t n = 0; n < shape_.state_size; ++n) {
      const double rate = double{in_.rates.row<float>(n)[channel_]};
      float& state = state_[static_cast<size_t>(n)];
      state = static_cast<float>(std::exp(-rate * double{step(p)}) * double{state} +
                                 double{input(p)} * double{b(p)[n]});
    }
  }
  void write_out(int64_t p) const {
    double sum = double{in_.skip.elements<float>()[channel_]} *
                 double{in_.x.row<float>(row_of(p))[channel_]};
    for (int64_t n = 0; n < shape_.state_size; ++n) {
      sum += double{state_[static_cast<size_t>(n)]} * double{in_.c.row<float>(row_of(p))[n]};
    }
    out_.row<float>(row_of(p))[channel_] = static_cast<float>(sum);
  }
  void write_state(int32_t block) const {
    for (int64_t n = 0; n < shape_.state_size; ++n) {
      set_state_element(memory_.states, state_offset(block, n),
                        double{state_[static_cast<size_t>(n)]});
    }
  }

  const ScanShape& shape_;
  const ScanInputs& in_;
  const StateSlice& slice_;
  std::span<const StateSave> saves_;
  int64_t channel_;
  const StateMemory& memory_;
  const Tensor& out_;
  std::vector<float> state_;
};

}  // namespace

void ReferenceRecurrent::do_short_convolution(const ConvolutionShape& shape, const Tensor& x,
                                              const ConvolutionWeights& weights,
                                              const StateSlices& slices, const StateMemory& memory,
                                              const Tensor& out) {
  for (const StateSlice& slice : slices.slices.host()) {
    float* const state = memory.states.row<float>(slice.block);
    float* const open = memory.open_rows.row<float>(slice.open_block);
    const int64_t end = slice.first_position + slice.num_rows;
    for (int64_t p = slice.first_position; p < end; ++p) {
      float* const row = out.row<float>(slice.first_row + p - slice.first_position);
      for (int64_t c = 0; c < shape.channels; ++c) {
        double sum = weights.bias != nullptr ? double{weights.bias->elements<float>()[c]} : 0.0;
        for (int64_t j = 0; j < shape.taps; ++j) {
          const float* const inputs = inputs_at(shape, slice, x, memory, p - shape.taps + 1 + j);
          if (inputs != nullptr) sum += double{weights.taps.row<float>(j)[c]} * double{inputs[c]};
        }
        row[c] = static_cast<float>(sum);
      }
    }
    // Row by row, as if each were a slice: the last inputs become the state when a chunk ends.
    for (int64_t p = slice.first_position; p < end; ++p) {
      const float* const row = x.row<float>(slice.first_row + p - slice.first_position);
      std::copy_n(row, shape.channels, open + shape.open_begin(chunk_of(p), p));
      if ((p + 1) % kStateChunk != 0) continue;
      const float* const last = open + shape.open_begin(chunk_of(p), p - shape.taps + 2);
      std::copy_n(last, shape.state_elements(), state);
      for (const StateSave& save : slices.saves_of(slice)) {
        if (save.position != p + 1) continue;
        std::copy_n(state, shape.state_elements(), memory.states.row<float>(save.block));
      }
    }
  }
}

void ReferenceRecurrent::do_decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates,
                                        const GateRange& range, const Tensor& out) {
  for (int64_t r = 0; r < x.size(0); ++r) {
    for (int64_t h = 0; h < x.size(1); ++h) {
      const double sum = double{x.row<float>(r)[h] + bias.elements<float>()[h]};
      const double softplus = std::max(sum, 0.0) + std::log1p(std::exp(-std::abs(sum)));
      const double gate = std::clamp(softplus, double{range.low}, double{range.high});
      out.row<float>(r)[h] = static_cast<float>(-double{rates.elements<float>()[h]} * gate);
    }
  }
}

void ReferenceRecurrent::do_multiply(const Tensor& x, const Tensor& y, const Tensor& out) {
  for (int64_t r = 0; r < x.size(0); ++r) {
    for (int64_t i = 0; i < x.size(1); ++i) {
      out.row<float>(r)[i] = x.row<float>(r)[i] * y.row<float>(r)[i];
    }
  }
}

namespace {

// Calls use(slice, begin, end) for the positions [begin, end) of each chunk that a slice has rows
// of, in order: what heads or channels share of the open chunk is overwritten by the next one.
template <class Use>
void for_each_chunk(const StateSlices& slices, const Use& use) {
  for (const StateSlice& slice : slices.slices.host()) {
    const int64_t last = slice.first_position + slice.num_rows;
    int64_t end = 0;
    for (int64_t begin = slice.first_position; begin < last; begin = end) {
      end = std::min(last, chunk_of(begin) + kStateChunk);
      use(slice, begin, end);
    }
  }
}

}  // namespace

void ReferenceRecurrent::do_delta_rule(const DeltaShape& shape, const DeltaInputs& inputs,
                                       const StateSlices& slices, const StateMemory& memory,
                                       const Tensor& out) {
  for_each_chunk(slices, [&](const StateSlice& slice, int64_t begin, int64_t end) {
    for (int64_t head = 0; head < shape.value_heads; ++head) {
      DeltaHead(shape, inputs, slices, slice, head, memory, out).run(begin, end);
    }
  });
}

void ReferenceRecurrent::do_selective_scan(const ScanShape& shape, const ScanInputs& in,
                                           const StateSlices& slices, const StateMemory& memory,
                                           const Tensor& out) {
  for_each_chunk(slices, [&](const StateSlice& slice, int64_t begin, int64_t end) {
    for (int64_t channel = 0; channel < shape.channels; ++channel) {
      ScanChannel(shape, in, slices, slice, channel, memory, out).run(begin, end);
    }
  });
}

void ReferenceRecurrent::do_copy_states(const Tensor& blocks, std::span<const BlockMove> moves) {
  const size_t size = dtype_bytes(blocks.dtype());
  const auto block = [&](int32_t index) {
    return static_cast<std::byte*>(blocks.raw()) +
           static_cast<size_t>(index * blocks.stride(0)) * size;
  };
  const size_t bytes = static_cast<size_t>(blocks.size(1)) * size;
  for (const BlockMove& move : moves) std::copy_n(block(move.from), bytes, block(move.to));
}

}  // namespace paceline
