#include "tests/kernels/recurrent_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/backend.h"
#include "tests/kernels/op_inputs.h"
#include "tests/kernels/same_bits.h"

namespace paceline {
namespace {

// A sequence's inputs, and what runs over them.
struct DeltaCase {
  DeltaCase(Memory& memory, const DeltaShape& delta, int64_t num_rows, uint64_t seed)
      : shape(delta),
        rows(num_rows),
        q(random_tensor(memory, DType::f32, {rows, shape.key_heads, shape.key_dim}, seed, 0.3f)),
        k(random_tensor(memory, DType::f32, {rows, shape.key_heads, shape.key_dim}, seed + 1,
                        0.3f)),
        v(random_tensor(memory, DType::f32, {rows, shape.value_heads, shape.value_dim}, seed + 2)),
        log_decay(random_tensor(memory, DType::f32, {rows, shape.decay_width()}, seed + 3, 0.2f)),
        beta(random_tensor(memory, DType::f32, {rows, shape.value_heads}, seed + 4, 0.5f)),
        skip(random_tensor(memory, DType::f32, {shape.value_heads}, seed + 5)) {
    for (int64_t i = 0; i < rows * shape.value_heads; ++i) beta.view.elements<float>()[i] += 0.5f;
    for (int64_t i = 0; i < rows * shape.decay_width(); ++i) {
      float& decay = log_decay.view.elements<float>()[i];
      // Channels may forget all at once.
      decay = shape.channel_decay && i % 7 == 0 ? -300.0f : -std::abs(decay);
    }
  }

  DeltaInputs inputs(int64_t begin, int64_t end) const {
    return {.q = q.view.slice(0, begin, end),
            .k = k.view.slice(0, begin, end),
            .v = v.view.slice(0, begin, end),
            .log_decay = log_decay.view.slice(0, begin, end),
            .beta = beta.view.slice(0, begin, end),
            .skip = shape.corrects ? nullptr : &skip.view};
  }

  DeltaShape shape;
  int64_t rows;
  OwnedTensor q, k, v, log_decay, beta, skip;
};

// Full of numbers that nobody may read.
void spoil(const Tensor& blocks) { std::memset(blocks.raw(), 0xFF, blocks.size_bytes()); }

OwnedTensor garbage(Memory& memory, DType dtype, int64_t num_blocks, int64_t elements) {
  OwnedTensor blocks = allocate_tensor(memory, dtype, {num_blocks, elements});
  spoil(blocks.view);
  return blocks;
}

struct Blocks {
  template <class Shape>
  Blocks(Memory& memory, int64_t num_states, int64_t num_open, const Shape& shape,
         DType dtype = DType::f32)
      : states(garbage(memory, dtype, num_states, shape.state_elements())),
        open_rows(garbage(memory, DType::f32, num_open, shape.open_elements())),
        view{.states = states.view, .open_rows = open_rows.view} {}

  OwnedTensor states, open_rows;
  StateMemory view;
};

// Rows [begin, end) of the case as one slice.
void run(RecurrentOps& ops, const DeltaCase& delta, int64_t begin, int64_t end, int32_t block,
         std::span<const StateSave> saves, const StateMemory& blocks, const Tensor& out) {
  const StateSlice slice{.first_row = 0,
                         .num_rows = end - begin,
                         .first_position = begin,
                         .block = block,
                         .num_saves = std::ssize(saves)};
  ops.delta_rule(delta.shape, delta.inputs(begin, end), {std::span(&slice, 1), saves}, blocks,
                 out.slice(0, begin, end));
}

// Token by token, in double: S = exp(g) S, by head or by channel; S += beta k (v - S^T k)^T; out =
// S^T q. Without corrections S += beta k v^T; out = S^T q + skip v.
std::vector<float> by_tokens(const DeltaCase& delta) {
  const DeltaShape& shape = delta.shape;
  std::vector<float> out;
  const auto size = static_cast<size_t>(shape.key_dim * shape.value_dim);
  std::vector<std::vector<double>> states(static_cast<size_t>(shape.value_heads),
                                          std::vector<double>(size, 0.0));
  for (int64_t row = 0; row < delta.rows; ++row) {
    for (int64_t head = 0; head < shape.value_heads; ++head) {
      std::vector<double>& state = states[static_cast<size_t>(head)];
      const int64_t key_head = head / (shape.value_heads / shape.key_heads);
      const float* const q = delta.q.view.row<float>(row) + key_head * shape.key_dim;
      const float* const k = delta.k.view.row<float>(row) + key_head * shape.key_dim;
      const float* const v = delta.v.view.row<float>(row) + head * shape.value_dim;
      const float* const decays = delta.log_decay.view.row<float>(row) + head * shape.head_decays();
      for (size_t i = 0; i < size; ++i) {
        const size_t channel = i / static_cast<size_t>(shape.value_dim);
        state[i] *= std::exp(double{decays[shape.channel_decay ? channel : 0]});
      }
      for (int64_t c = 0; c < shape.value_dim; ++c) {
        double known = 0.0, sum = 0.0;
        for (int64_t i = 0; i < shape.key_dim; ++i) {
          known += state[static_cast<size_t>(i * shape.value_dim + c)] * double{k[i]};
        }
        if (!shape.corrects) {
          known = 0.0;
          sum = double{delta.skip.view.elements<float>()[head]} * double{v[c]};
        }
        const double update = double{delta.beta.view.row<float>(row)[head]} * (v[c] - known);
        for (int64_t i = 0; i < shape.key_dim; ++i) {
          double& element = state[static_cast<size_t>(i * shape.value_dim + c)];
          element += double{k[i]} * update;
          sum += element * double{q[i]};
        }
        out.push_back(static_cast<float>(sum));
      }
    }
  }
  return out;
}

struct ScanCase {
  ScanCase(Memory& memory, const ScanShape& scan, int64_t num_rows, uint64_t seed)
      : shape(scan),
        rows(num_rows),
        x(random_tensor(memory, DType::f32, {rows, shape.channels}, seed)),
        steps(random_tensor(memory, DType::f32, {rows, shape.channels}, seed + 1, 0.5f)),
        b(random_tensor(memory, DType::f32, {rows, shape.state_size}, seed + 2)),
        c(random_tensor(memory, DType::f32, {rows, shape.state_size}, seed + 3)),
        rates(random_tensor(memory, DType::f32, {shape.state_size, shape.channels}, seed + 4)),
        skip(random_tensor(memory, DType::f32, {shape.channels}, seed + 5)) {
    for (const Tensor& tensor : {steps.view, rates.view}) {
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        tensor.elements<float>()[i] = std::abs(tensor.elements<float>()[i]);
      }
    }
  }

  // Rows [begin, end) as one slice.
  void run(RecurrentOps& ops, int64_t begin, int64_t end, std::span<const StateSave> saves,
           const StateMemory& blocks, const Tensor& out) const {
    const StateSlice slice{
        .num_rows = end - begin, .first_position = begin, .num_saves = std::ssize(saves)};
    ops.selective_scan(shape,
                       {.x = x.view.slice(0, begin, end),
                        .steps = steps.view.slice(0, begin, end),
                        .b = b.view.slice(0, begin, end),
                        .c = c.view.slice(0, begin, end),
                        .rates = rates.view,
                        .skip = skip.view},
                       {std::span(&slice, 1), saves}, blocks, out.slice(0, begin, end));
  }
  OwnedTensor whole(Memory& memory, RecurrentOps& ops, DType dtype = DType::f32) const {
    Blocks blocks(memory, 1, 1, shape, dtype);
    OwnedTensor out = allocate_tensor(memory, DType::f32, {rows, shape.channels});
    run(ops, 0, rows, {}, blocks.view, out.view);
    return out;
  }
  // One channel, in double.
  std::vector<double> by_rows(int64_t channel) const {
    std::vector<double> state(static_cast<size_t>(shape.state_size), 0.0), out;
    for (int64_t row = 0; row < rows; ++row) {
      const double step = double{steps.view.row<float>(row)[channel]};
      const double own = double{x.view.row<float>(row)[channel]};
      double sum = double{skip.view.elements<float>()[channel]} * own;
      for (int64_t n = 0; n < shape.state_size; ++n) {
        double& element = state[static_cast<size_t>(n)];
        element = std::exp(-double{rates.view.row<float>(n)[channel]} * step) * element +
                  step * own * double{b.view.row<float>(row)[n]};
        sum += element * double{c.view.row<float>(row)[n]};
      }
      out.push_back(sum);
    }
    return out;
  }

  ScanShape shape;
  int64_t rows;
  OwnedTensor x, steps, b, c, rates, skip;
};

std::vector<ScanShape> scan_shapes() {
  return {{.channels = 8, .state_size = 4},
          {.channels = 75, .state_size = 16},
          {.channels = 130, .state_size = 3}};
}

OwnedTensor whole(Memory& memory, RecurrentOps& by, const DeltaCase& delta,
                  DType dtype = DType::f32) {
  Blocks blocks(memory, 1, 1, delta.shape, dtype);
  OwnedTensor out = allocate_tensor(memory, DType::f32,
                                    {delta.rows, delta.shape.value_heads, delta.shape.value_dim});
  run(by, delta, 0, delta.rows, 0, {}, blocks.view, out.view);
  return out;
}

}  // namespace

std::vector<DeltaShape> RecurrentChecks::delta_shapes() const {
  std::vector<DeltaShape> shapes = {
      {.key_heads = 1, .value_heads = 1, .key_dim = 8, .value_dim = 8},
      {.key_heads = 2, .value_heads = 2, .key_dim = 24, .value_dim = 40},
      {.key_heads = 2, .value_heads = 6, .key_dim = 20, .value_dim = 12},
      {.key_heads = 2, .value_heads = 4, .key_dim = 128, .value_dim = 128},
      {.key_heads = 1, .value_heads = 11, .key_dim = 20, .value_dim = 24, .corrects = false},
      {.key_heads = 2, .value_heads = 4, .key_dim = 64, .value_dim = 16, .corrects = false}};
  if (!takes_channel_decay_) return shapes;
  for (const size_t i : {size_t{1}, size_t{2}, size_t{4}}) {
    shapes.push_back(shapes[i]);
    shapes.back().channel_decay = true;
  }
  return shapes;
}

void RecurrentChecks::delta_rule_is_its_recurrence() {
  const auto reference = make_reference_backend();
  for (const DeltaShape& shape : delta_shapes()) {
    const DeltaCase delta(memory_, shape, 75, 7);
    const std::vector<float> expected = by_tokens(delta);
    double largest = 0.0;
    for (const float value : expected) largest = std::max(largest, std::abs(double{value}));
    for (RecurrentOps* by : {&ops(), reference->recurrent()}) {
      for (const DType dtype : state_dtypes_) {
        const OwnedTensor out = whole(memory_, *by, delta, dtype);
        double error = 0.0;
        for (size_t i = 0; i < expected.size(); ++i) {
          error = std::max(error, std::abs(double{out.view.elements<float>()[i]} - expected[i]));
        }
        const double bound = dtype == DType::bf16 ? 1e-2 : 3e-6;
        EXPECT_LE(error, bound * largest) << shape.key_dim << " " << shape.value_heads;
        if (dtype == DType::bf16) {
          EXPECT_GT(error, 1e-5 * largest) << "states are rounded";
        }
      }
    }
  }
}

void RecurrentChecks::delta_rule_has_the_same_bits_however_it_is_cut() {
  Draws draws(3);
  for (const DeltaShape& shape : delta_shapes()) {
    const DeltaCase delta(memory_, shape, 70, 11);
    std::vector<OwnedTensor> whole_rows;  // by dtype of the states
    for (const DType dtype : state_dtypes_) {
      whole_rows.push_back(whole(memory_, ops(), delta, dtype));
    }
    for (int round = 0; round < rounds_; ++round) {
      RecurrentOps& by = *all_[static_cast<size_t>(draws.below(std::ssize(all_)))];
      const auto type = static_cast<size_t>(draws.below(std::ssize(state_dtypes_)));
      const OwnedTensor& expected = whole_rows[type];
      Blocks blocks(memory_, 3, 1, shape, state_dtypes_[type]);
      const OwnedTensor out = allocate_tensor(memory_, DType::f32, expected.view.shape());
      const int64_t largest = round < rounds_ / 4 ? 1 : 1 + draws.below(40);
      for (int64_t begin = 0; begin < delta.rows;) {
        const int64_t end = std::min(delta.rows, begin + 1 + draws.below(largest));
        // A save at the last end of a chunk; the sequence goes on from it in one case of two.
        const int64_t boundary = end / kStateChunk * kStateChunk;
        const StateSave save{.position = boundary, .block = 1};
        const bool saves = boundary > begin;
        run(by, delta, begin, end, 0, std::span(&save, saves ? 1 : 0), blocks.view, out.view);
        begin = end;
        if (!saves || draws.below(2) == 0) continue;
        by.copy_states(blocks.view.states, std::vector<BlockMove>{{.from = 1, .to = 0}});
        spoil(blocks.view.open_rows);  // no chunk is open
        begin = boundary;
      }
      EXPECT_SAME_BITS(to_vector(out.view), to_vector(expected.view))
          << shape.key_dim << ", round " << round;
    }
  }
}

void RecurrentChecks::positions_are_taken_back() {
  Draws draws(5);
  const DeltaShape shape{.key_heads = 1, .value_heads = 2, .key_dim = 16, .value_dim = 24};
  const DeltaCase delta(memory_, shape, 120, 13), other(memory_, shape, 120, 17);
  const OwnedTensor expected = whole(memory_, ops(), delta);
  Blocks blocks(memory_, 1, 1, shape);
  const OwnedTensor out = allocate_tensor(memory_, DType::f32, expected.view.shape());
  const OwnedTensor unused = allocate_tensor(memory_, DType::f32, expected.view.shape());
  for (int64_t begin = 0; begin < delta.rows;) {
    const int64_t end = std::min(delta.rows, begin + 1 + draws.below(9));
    run(ops(), delta, begin, end, 0, {}, blocks.view, out.view);
    begin = end;  // then rows of another sequence, which don't count
    const int64_t wrong = end + draws.below(kStateChunk - end % kStateChunk);  // it stays open
    if (wrong > end && wrong <= delta.rows)
      run(ops(), other, end, wrong, 0, {}, blocks.view, unused.view);
  }
  EXPECT_SAME_BITS(to_vector(out.view), to_vector(expected.view));
}

void RecurrentChecks::sequences_run_side_by_side() {
  const DeltaShape shape{.key_heads = 2, .value_heads = 4, .key_dim = 12, .value_dim = 20};
  const DeltaCase delta(memory_, shape, 50, 19);
  Blocks blocks(memory_, 4, 3, shape);
  const OwnedTensor out = allocate_tensor(memory_, DType::f32, {50, 4, 20});
  const StateSlice slices[] = {{.first_row = 0, .num_rows = 17, .block = 3, .open_block = 0},
                               {.first_row = 17, .num_rows = 33, .block = 1, .open_block = 2}};
  for (RecurrentOps* const by : all_) {
    by->delta_rule(shape, delta.inputs(0, 50), {slices}, blocks.view, out.view);
    for (const StateSlice& slice : slices) {
      Blocks block(memory_, 1, 1, shape);
      const OwnedTensor alone = allocate_tensor(memory_, DType::f32, {slice.num_rows, 4, 20});
      const StateSlice own{.num_rows = slice.num_rows};
      const int64_t end = slice.first_row + slice.num_rows;
      ops().delta_rule(shape, delta.inputs(slice.first_row, end), {std::span(&own, 1)}, block.view,
                       alone.view);
      EXPECT_SAME_BITS(to_vector(out.view.slice(0, slice.first_row, end)), to_vector(alone.view));
    }
  }
}

void RecurrentChecks::convolutions_have_the_same_bits_however_they_are_cut() {
  Draws draws(23);
  const auto reference = make_reference_backend();
  for (const ConvolutionShape& shape :
       {ConvolutionShape{.channels = 7, .taps = 4}, ConvolutionShape{.channels = 600, .taps = 3},
        ConvolutionShape{.channels = 40, .taps = 2}}) {
    constexpr int64_t kRows = 60;
    const OwnedTensor x = random_tensor(memory_, DType::f32, {kRows, shape.channels}, 1);
    const OwnedTensor taps = random_tensor(memory_, DType::f32, {shape.taps, shape.channels}, 2);
    const OwnedTensor bias = random_tensor(memory_, DType::f32, {shape.channels}, 3);
    const ConvolutionWeights weights{.taps = taps.view, .bias = &bias.view};
    const auto run_rows = [&](RecurrentOps& by, int64_t begin, int64_t end,
                              std::span<const StateSave> saves, const StateMemory& blocks,
                              const Tensor& out) {
      const StateSlice slice{
          .num_rows = end - begin, .first_position = begin, .num_saves = std::ssize(saves)};
      by.short_convolution(shape, x.view.slice(0, begin, end), weights,
                           {std::span(&slice, 1), saves}, blocks, out.slice(0, begin, end));
    };
    const OwnedTensor expected = allocate_tensor(memory_, DType::f32, {kRows, shape.channels});
    Blocks first(memory_, 1, 1, shape);
    run_rows(ops(), 0, kRows, {}, first.view, expected.view);
    const OwnedTensor by_reference = allocate_tensor(memory_, DType::f32, expected.view.shape());
    run_rows(*reference->recurrent(), 0, kRows, {}, first.view, by_reference.view);
    for (int64_t i = 0; i < kRows * shape.channels; ++i) {
      EXPECT_NEAR(expected.view.elements<float>()[i], by_reference.view.elements<float>()[i], 1e-6);
    }
    for (int round = 0; round < rounds_; ++round) {
      RecurrentOps& by = *all_[static_cast<size_t>(draws.below(std::ssize(all_)))];
      Blocks blocks(memory_, 2, 1, shape);
      const OwnedTensor out = allocate_tensor(memory_, DType::f32, expected.view.shape());
      const int64_t largest = round < rounds_ / 4 ? 1 : 1 + draws.below(25);
      for (int64_t begin = 0; begin < kRows;) {
        const int64_t end = std::min(kRows, begin + 1 + draws.below(largest));
        const int64_t boundary = end / kStateChunk * kStateChunk;
        const StateSave save{.position = boundary, .block = 1};
        const bool saves = boundary > begin;
        run_rows(by, begin, end, std::span(&save, saves ? 1 : 0), blocks.view, out.view);
        begin = end;
        if (!saves || draws.below(2) == 0) continue;
        by.copy_states(blocks.view.states, std::vector<BlockMove>{{.from = 1, .to = 0}});
        spoil(blocks.view.open_rows);  // no chunk is open
        begin = boundary;
      }
      EXPECT_SAME_BITS(to_vector(out.view), to_vector(expected.view))
          << shape.channels << ", round " << round;
    }
  }
}

void RecurrentChecks::inputs_of_convolutions_are_taken_back() {
  Draws draws(29);
  const ConvolutionShape shape{.channels = 20, .taps = 4};
  constexpr int64_t kRows = 150;
  const OwnedTensor x = random_tensor(memory_, DType::f32, {kRows, 20}, 1);
  const OwnedTensor other = random_tensor(memory_, DType::f32, {kRows, 20}, 2);
  const OwnedTensor taps = random_tensor(memory_, DType::f32, {4, 20}, 3);
  const ConvolutionWeights weights{.taps = taps.view};
  Blocks blocks(memory_, 1, 1, shape);
  const auto run_rows = [&](const Tensor& inputs, int64_t begin, int64_t end, const Tensor& out) {
    const StateSlice slice{.num_rows = end - begin, .first_position = begin};
    ops().short_convolution(shape, inputs.slice(0, begin, end), weights, {std::span(&slice, 1)},
                            blocks.view, out.slice(0, begin, end));
  };
  const OwnedTensor expected = allocate_tensor(memory_, DType::f32, {kRows, 20});
  run_rows(x.view, 0, kRows, expected.view);
  const OwnedTensor out = allocate_tensor(memory_, DType::f32, {kRows, 20});
  const OwnedTensor unused = allocate_tensor(memory_, DType::f32, {kRows, 20});
  for (int64_t begin = 0; begin < kRows;) {
    const int64_t end = std::min(kRows, begin + 1 + draws.below(9));
    run_rows(x.view, begin, end, out.view);
    begin = end;
    const int64_t wrong = end + draws.below(kStateChunk - end % kStateChunk);  // it stays open
    if (wrong > end && wrong <= kRows) run_rows(other.view, end, wrong, unused.view);
  }
  EXPECT_SAME_BITS(to_vector(out.view), to_vector(expected.view));
}

void RecurrentChecks::selective_scan_is_its_recurrence() {
  const auto reference = make_reference_backend();
  for (const ScanShape& shape : scan_shapes()) {
    const ScanCase scan(memory_, shape, 75, 31);
    for (RecurrentOps* by : {&ops(), reference->recurrent()}) {
      for (const DType dtype : state_dtypes_) {
        const OwnedTensor out = scan.whole(memory_, *by, dtype);
        double largest = 0.0;  // error
        for (int64_t channel = 0; channel < shape.channels; ++channel) {
          const std::vector<double> expected = scan.by_rows(channel);
          for (int64_t row = 0; row < scan.rows; ++row) {
            const double found = double{out.view.row<float>(row)[channel]};
            largest = std::max(largest, std::abs(found - expected[static_cast<size_t>(row)]));
          }
        }
        EXPECT_LE(largest, dtype == DType::bf16 ? 0.1 : 2e-5) << shape.channels;
        if (dtype == DType::bf16) {
          EXPECT_GT(largest, 1e-4) << "states are rounded";
        }
      }
    }
  }
}

void RecurrentChecks::selective_scans_have_the_same_bits_however_they_are_cut() {
  Draws draws(37);
  for (const ScanShape& shape : scan_shapes()) {
    const ScanCase scan(memory_, shape, 70, 41);
    std::vector<OwnedTensor> whole_rows;  // by dtype of the states
    for (const DType dtype : state_dtypes_) {
      whole_rows.push_back(scan.whole(memory_, ops(), dtype));
    }
    for (int round = 0; round < rounds_; ++round) {
      RecurrentOps& by = *all_[static_cast<size_t>(draws.below(std::ssize(all_)))];
      const auto type = static_cast<size_t>(draws.below(std::ssize(state_dtypes_)));
      const OwnedTensor& expected = whole_rows[type];
      Blocks blocks(memory_, 2, 1, shape, state_dtypes_[type]);
      const OwnedTensor out = allocate_tensor(memory_, DType::f32, expected.view.shape());
      const int64_t largest = round < rounds_ / 4 ? 1 : 1 + draws.below(40);
      for (int64_t begin = 0; begin < scan.rows;) {
        const int64_t end = std::min(scan.rows, begin + 1 + draws.below(largest));
        const int64_t boundary = end / kStateChunk * kStateChunk;
        const StateSave save{.position = boundary, .block = 1};
        const bool saves = boundary > begin;
        scan.run(by, begin, end, std::span(&save, saves ? 1 : 0), blocks.view, out.view);
        begin = end;
        if (!saves || draws.below(2) == 0) continue;
        by.copy_states(blocks.view.states, std::vector<BlockMove>{{.from = 1, .to = 0}});
        spoil(blocks.view.open_rows);  // no chunk is open
        begin = boundary;
      }
      EXPECT_SAME_BITS(to_vector(out.view), to_vector(expected.view))
          << shape.channels << ", round " << round;
    }
  }
}

void RecurrentChecks::scanned_positions_are_taken_back() {
  Draws draws(43);
  const ScanShape shape{.channels = 20, .state_size = 5};
  const ScanCase scan(memory_, shape, 120, 47), other(memory_, shape, 120, 53);
  const OwnedTensor expected = scan.whole(memory_, ops());
  Blocks blocks(memory_, 1, 1, shape);
  const OwnedTensor out = allocate_tensor(memory_, DType::f32, expected.view.shape());
  const OwnedTensor unused = allocate_tensor(memory_, DType::f32, expected.view.shape());
  for (int64_t begin = 0; begin < scan.rows;) {
    const int64_t end = std::min(scan.rows, begin + 1 + draws.below(9));
    scan.run(ops(), begin, end, {}, blocks.view, out.view);
    begin = end;
    const int64_t wrong = end + draws.below(kStateChunk - end % kStateChunk);  // it stays open
    if (wrong > end && wrong <= scan.rows) {
      other.run(ops(), end, wrong, {}, blocks.view, unused.view);
    }
  }
  EXPECT_SAME_BITS(to_vector(out.view), to_vector(expected.view));
}

void RecurrentChecks::decay_gates() {
  const OwnedTensor x = random_tensor(memory_, DType::f32, {9, 21}, 1, 30.0f);
  const OwnedTensor bias = random_tensor(memory_, DType::f32, {21}, 2, 4.0f);
  const OwnedTensor rates = random_tensor(memory_, DType::f32, {21}, 3, 8.0f);
  const OwnedTensor out = allocate_tensor(memory_, DType::f32, {9, 21});
  const OwnedTensor expected = allocate_tensor(memory_, DType::f32, {9, 21});
  const auto reference = make_reference_backend();
  for (const GateRange range : {GateRange{}, GateRange{.low = 0.5f, .high = 7.0f}}) {
    ops().decay_gates(x.view, bias.view, rates.view, range, out.view);
    reference->recurrent()->decay_gates(x.view, bias.view, rates.view, range, expected.view);
    for (int64_t i = 0; i < 9 * 21; ++i) {
      const double wanted = double{expected.view.elements<float>()[i]};
      EXPECT_NEAR(double{out.view.elements<float>()[i]}, wanted, 2e-7 * std::abs(wanted) + 1e-12);
    }
  }
}

void RecurrentChecks::products() {
  const OwnedTensor x = random_tensor(memory_, DType::f32, {9, 37}, 1);
  const OwnedTensor y = random_tensor(memory_, DType::f32, {9, 37}, 2);
  const OwnedTensor expected = allocate_tensor(memory_, DType::f32, {9, 37});
  make_reference_backend()->recurrent()->multiply(x.view, y.view, expected.view);
  EXPECT_EQ(expected.view.row<float>(8)[36], x.view.row<float>(8)[36] * y.view.row<float>(8)[36]);
  ops().multiply(x.view, y.view, y.view);  // in place
  EXPECT_SAME_BITS(to_vector(y.view), to_vector(expected.view));
}

}  // namespace paceline
