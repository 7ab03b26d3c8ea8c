// Gradients of recurrent layers' operations: the reference against differences of a loss in double,
// CPUs against the reference, and the same bits whatever the threads and the neighbours.
#include "kernels/recurrent_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/finite_difference.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

struct DeltaBackwardCase {
  DeltaBackwardCase(Memory& memory, const DeltaShape& delta, std::vector<int64_t> sequence_lengths,
                    bool with_skip)
      : shape(delta), lengths(std::move(sequence_lengths)), has_skip(with_skip) {
    for (const int64_t length : lengths) {
      sequences.push_back({.first_row = rows, .num_rows = length});
      rows += length;
    }
    const auto random = [&](Extents extents, uint64_t seed, float size) {
      return random_tensor(memory, DType::f32, extents, seed, size);
    };
    const auto zeros = [&](Extents extents) {
      return allocate_tensor(memory, DType::f32, extents);
    };
    const Extents keys = {rows, shape.key_heads, shape.key_dim};
    const Extents values = {rows, shape.value_heads, shape.value_dim};
    const Extents gates = {rows, shape.value_heads};
    // Keys of about unit length, as the layers make them.
    const float key_size = 1.7f / std::sqrt(static_cast<float>(shape.key_dim));
    q = random(keys, 1, key_size);
    k = random(keys, 2, key_size);
    v = random(values, 3, 1.0f);
    log_decay = random(gates, 4, 0.3f);
    beta = random(gates, 5, 0.5f);
    dout = random(values, 6, 1.0f);
    for (int64_t i = 0; i < rows * shape.value_heads; ++i) {
      log_decay.view.elements<float>()[i] = -std::abs(log_decay.view.elements<float>()[i]);
      beta.view.elements<float>()[i] += 0.5f;
    }
    if (has_skip) skip = random({shape.value_heads}, 7, 2.0f);
    dq = zeros(keys);
    dk = zeros(keys);
    dv = zeros(values);
    dlog_decay = zeros(gates);
    dbeta = zeros(gates);
  }

  DeltaGradientInputs inputs() const {
    return {.forward = {.q = q.view,
                        .k = k.view,
                        .v = v.view,
                        .log_decay = log_decay.view,
                        .beta = beta.view,
                        .skip = has_skip ? &skip.view : nullptr},
            .dout = dout.view};
  }

  void run(RecurrentGradientOps& ops) {
    for (const auto& [name, gradient] : gradients()) {
      std::fill_n(gradient->view.elements<float>(), gradient->view.num_elements(),
                  std::numeric_limits<float>::quiet_NaN());
    }
    ops.delta_rule_gradient(shape, inputs(), sequences,
                            {.dq = dq.view,
                             .dk = dk.view,
                             .dv = dv.view,
                             .dlog_decay = dlog_decay.view,
                             .dbeta = dbeta.view});
  }

  std::vector<std::pair<const char*, OwnedTensor*>> gradients() {
    return {{"q", &dq}, {"k", &dk}, {"v", &dv}, {"log_decay", &dlog_decay}, {"beta", &dbeta}};
  }
  std::vector<OwnedTensor*> operands() { return {&q, &k, &v, &log_decay, &beta}; }

  // The sum of dout * out, token by token in double.
  double loss() const {
    double sum = 0.0;
    for (const SequenceRows& sequence : sequences) {
      for (int64_t head = 0; head < shape.value_heads; ++head) sum += head_loss(sequence, head);
    }
    return sum;
  }

  DeltaShape shape;
  std::vector<int64_t> lengths;
  bool has_skip;
  int64_t rows = 0;
  std::vector<SequenceRows> sequences;
  OwnedTensor q, k, v, log_decay, beta, skip, dout, dq, dk, dv, dlog_decay, dbeta;

 private:
  double head_loss(const SequenceRows& sequence, int64_t head) const {
    const int64_t key_head = head / (shape.value_heads / shape.key_heads);
    std::vector<double> state(static_cast<size_t>(shape.key_dim * shape.value_dim));
    double loss = 0.0;
    for (int64_t row = sequence.first_row; row < sequence.first_row + sequence.num_rows; ++row) {
      const float* const query = q.view.row<float>(row) + key_head * shape.key_dim;
      const float* const key = k.view.row<float>(row) + key_head * shape.key_dim;
      const int64_t first = head * shape.value_dim;
      const double decay = std::exp(double{log_decay.view.row<float>(row)[head]});
      for (int64_t c = 0; c < shape.value_dim; ++c) {
        const double value = double{v.view.row<float>(row)[first + c]};
        double known = 0.0, out = 0.0;
        for (int64_t i = 0; i < shape.key_dim; ++i) {
          double& element = state[static_cast<size_t>(i * shape.value_dim + c)];
          element *= decay;
          known += element * double{key[i]};
        }
        const double update =
            double{beta.view.row<float>(row)[head]} * (value - (shape.corrects ? known : 0.0));
        for (int64_t i = 0; i < shape.key_dim; ++i) {
          double& element = state[static_cast<size_t>(i * shape.value_dim + c)];
          element += double{key[i]} * update;
          out += element * double{query[i]};
        }
        if (has_skip) out += double{skip.view.elements<float>()[head]} * value;
        loss += out * double{dout.view.row<float>(row)[first + c]};
      }
    }
    return loss;
  }
};

struct NamedCase {
  DeltaShape shape;
  std::vector<int64_t> lengths;
  bool has_skip = false;
};

// Heads alone and in groups, more of them than a task has; odd widths; sequences that end within a
// chunk and at its end, and one of several segments.
std::vector<NamedCase> delta_cases() {
  std::vector<NamedCase> cases = {
      {{.key_heads = 1, .value_heads = 1, .key_dim = 8, .value_dim = 8}, {1, 16, 17}},
      {{.key_heads = 2, .value_heads = 6, .key_dim = 20, .value_dim = 12}, {33, 5, 48}},
      {{.key_heads = 1, .value_heads = 19, .key_dim = 16, .value_dim = 4}, {40}, true},
      {{.key_heads = 2, .value_heads = 2, .key_dim = 24, .value_dim = 40}, {75}},
      {{.key_heads = 1, .value_heads = 1, .key_dim = 6, .value_dim = 5}, {2100, 20}, true}};
  const size_t count = cases.size();
  for (size_t i = 0; i < count; ++i) {
    cases.push_back(cases[i]);
    cases.back().shape.corrects = false;
  }
  return cases;
}

struct ScanBackwardCase {
  ScanBackwardCase(Memory& memory, const ScanShape& scan, const std::vector<int64_t>& lengths)
      : shape(scan) {
    for (const int64_t length : lengths) {
      sequences.push_back({.first_row = rows, .num_rows = length});
      rows += length;
    }
    uint64_t seed = 1;
    const auto random = [&](Extents extents) {
      return random_tensor(memory, DType::f32, extents, seed++, 0.7f);
    };
    const Extents channels = {rows, shape.channels}, states = {rows, shape.state_size};
    const Extents all_rates = {shape.state_size, shape.channels};
    for (OwnedTensor* const one : {&x, &steps, &dout}) *one = random(channels);
    for (OwnedTensor* const one : {&b, &c}) *one = random(states);
    skip = random({shape.channels});
    rates = random(all_rates);
    for (const Tensor& positive : {steps.view, rates.view}) {
      for (int64_t i = 0; i < positive.num_elements(); ++i) {
        positive.elements<float>()[i] = std::abs(positive.elements<float>()[i]);
      }
    }
    for (OwnedTensor* const one : {&dx, &dsteps}) {
      *one = allocate_tensor(memory, DType::f32, channels);
    }
    for (OwnedTensor* const one : {&db, &dc}) *one = allocate_tensor(memory, DType::f32, states);
    dlog_rates = allocate_tensor(memory, DType::f32, all_rates);
  }

  void run(RecurrentGradientOps& ops) {
    for (OwnedTensor* const one : {&dx, &dsteps, &db, &dc}) {
      std::fill_n(one->view.elements<float>(), one->view.num_elements(), std::nanf(""));
    }
    ops.selective_scan_gradient(shape,
                                {.forward = {.x = x.view,
                                             .steps = steps.view,
                                             .b = b.view,
                                             .c = c.view,
                                             .rates = rates.view,
                                             .skip = skip.view},
                                 .dout = dout.view},
                                sequences,
                                {.dx = dx.view,
                                 .dsteps = dsteps.view,
                                 .db = db.view,
                                 .dc = dc.view,
                                 .dlog_rates = wants_rates ? &dlog_rates.view : nullptr});
  }

  std::vector<std::pair<const char*, OwnedTensor*>> gradients() {
    return {{"x", &dx}, {"steps", &dsteps}, {"b", &db}, {"c", &dc}};
  }
  std::vector<OwnedTensor*> operands() { return {&x, &steps, &b, &c}; }

  // The sum of dout * out, row by row in double.
  double loss() const {
    double sum = 0.0;
    for (const SequenceRows& sequence : sequences) {
      for (int64_t channel = 0; channel < shape.channels; ++channel) {
        sum += channel_loss(sequence, channel);
      }
    }
    return sum;
  }

  ScanShape shape;
  bool wants_rates = true;
  int64_t rows = 0;
  std::vector<SequenceRows> sequences;
  OwnedTensor x, steps, b, c, rates, skip, dout, dx, dsteps, db, dc, dlog_rates;

 private:
  double channel_loss(const SequenceRows& sequence, int64_t channel) const {
    std::vector<double> state(static_cast<size_t>(shape.state_size));
    double loss = 0.0;
    for (int64_t row = sequence.first_row; row < sequence.first_row + sequence.num_rows; ++row) {
      const double step = double{steps.view.row<float>(row)[channel]};
      const double own = double{x.view.row<float>(row)[channel]};
      double out = double{skip.view.elements<float>()[channel]} * own;
      for (int64_t n = 0; n < shape.state_size; ++n) {
        double& element = state[static_cast<size_t>(n)];
        element = std::exp(-double{rates.view.row<float>(n)[channel]} * step) * element +
                  step * own * double{b.view.row<float>(row)[n]};
        out += element * double{c.view.row<float>(row)[n]};
      }
      loss += out * double{dout.view.row<float>(row)[channel]};
    }
    return loss;
  }
};

struct NamedScan {
  ScanShape shape;
  std::vector<int64_t> lengths;
};

// One part of channels and several; sequences that end within a chunk and at its end.
std::vector<NamedScan> scan_cases() {
  return {{{.channels = 5, .state_size = 3}, {1, 16, 17}},
          {{.channels = 19, .state_size = 16}, {33, 5, 48}},
          {{.channels = 300, .state_size = 4}, {40, 7}}};
}

TEST(RecurrentGradientReference, OfSelectiveScanIsItsDerivative) {
  Memory memory;
  const auto reference = make_reference_backend();
  for (const NamedScan& one : scan_cases()) {
    if (one.shape.channels > 100) continue;
    ScanBackwardCase scan(memory, one.shape, one.lengths);
    scan.run(*reference->recurrent_gradients());
    const auto operands = scan.operands();
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto [name, gradient] = scan.gradients()[i];
      expect_gradient(
          name, operands[i]->view, gradient->view, [&] { return scan.loss(); }, 1e-5, 1e-3f);
    }
    // By the rates themselves.
    for (int64_t i = 0; i < scan.rates.view.num_elements(); ++i) {
      scan.dlog_rates.view.elements<float>()[i] /= scan.rates.view.elements<float>()[i];
    }
    expect_gradient(
        "rates", scan.rates.view, scan.dlog_rates.view, [&] { return scan.loss(); }, 1e-4, 1e-3f);
  }
}

TEST(RecurrentGradientReference, OfDeltaRuleIsItsDerivative) {
  Memory memory;
  const auto reference = make_reference_backend();
  for (const NamedCase& one : delta_cases()) {
    if (one.lengths.front() > 100) continue;
    SCOPED_TRACE(one.shape.corrects);
    DeltaBackwardCase delta(memory, one.shape, one.lengths, one.has_skip);
    delta.run(*reference->recurrent_gradients());
    const auto operands = delta.operands();
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto [name, gradient] = delta.gradients()[i];
      expect_gradient(
          name, operands[i]->view, gradient->view, [&] { return delta.loss(); }, 1e-5, 1e-3f);
    }
  }
}

class RecurrentGradientTest : public IsaTest {
 protected:
  RecurrentGradientOps& ops() { return *backend().recurrent_gradients(); }
};

void expect_near_largest(const Tensor& found, const Tensor& expected, double tolerance) {
  const std::vector<float> x = to_vector(found), y = to_vector(expected);
  double largest = 0.0, error = 0.0;
  for (size_t i = 0; i < y.size(); ++i) {
    largest = std::max(largest, std::abs(double{y[i]}));
    error = std::max(error, std::isnan(x[i]) ? 1e9 : std::abs(double{x[i]} - double{y[i]}));
  }
  EXPECT_LE(error, tolerance * largest);
}

TEST_P(RecurrentGradientTest, OfDeltaRuleIsTheReferences) {
  const auto reference = make_reference_backend();
  for (const NamedCase& one : delta_cases()) {
    SCOPED_TRACE(testing::Message()
                 << one.shape.key_dim << " wide keys, corrects " << one.shape.corrects);
    DeltaBackwardCase found(memory_, one.shape, one.lengths, one.has_skip);
    DeltaBackwardCase expected(memory_, one.shape, one.lengths, one.has_skip);
    found.run(ops());
    expected.run(*reference->recurrent_gradients());
    for (size_t i = 0; i < found.gradients().size(); ++i) {
      SCOPED_TRACE(found.gradients()[i].first);
      expect_near_largest(found.gradients()[i].second->view, expected.gradients()[i].second->view,
                          3e-6);
    }
  }
}

TEST_P(RecurrentGradientTest, OfDeltaRuleHasTheSameBitsWithThreadsAndNeighbours) {
  for (const NamedCase& one : delta_cases()) {
    DeltaBackwardCase expected(memory_, one.shape, one.lengths, one.has_skip);
    expected.run(ops());
    for (const auto& other : with_more_threads()) {
      DeltaBackwardCase found(memory_, one.shape, one.lengths, one.has_skip);
      found.run(*other->recurrent_gradients());
      for (size_t i = 0; i < found.gradients().size(); ++i) {
        EXPECT_SAME_BITS(to_vector(found.gradients()[i].second->view),
                         to_vector(expected.gradients()[i].second->view))
            << found.gradients()[i].first;
      }
    }
    DeltaBackwardCase alone(memory_, one.shape, one.lengths, one.has_skip);
    const SequenceRows last = alone.sequences.back();
    alone.sequences = {last};
    alone.run(ops());
    for (size_t i = 0; i < alone.gradients().size(); ++i) {
      const auto rows_of = [&](const OwnedTensor& gradient) {
        return to_vector(gradient.view.slice(0, last.first_row, last.first_row + last.num_rows));
      };
      EXPECT_SAME_BITS(rows_of(*alone.gradients()[i].second),
                       rows_of(*expected.gradients()[i].second));
      if (last.first_row > 0) {
        EXPECT_TRUE(std::isnan(alone.gradients()[i].second->view.elements<float>()[0]));
      }
    }
  }
}

TEST_P(RecurrentGradientTest, OfSelectiveScanIsTheReferences) {
  const auto reference = make_reference_backend();
  for (const NamedScan& one : scan_cases()) {
    SCOPED_TRACE(one.shape.channels);
    ScanBackwardCase found(memory_, one.shape, one.lengths);
    ScanBackwardCase expected(memory_, one.shape, one.lengths);
    found.run(ops());
    expected.run(*reference->recurrent_gradients());
    for (size_t i = 0; i < found.gradients().size(); ++i) {
      SCOPED_TRACE(found.gradients()[i].first);
      expect_near_largest(found.gradients()[i].second->view, expected.gradients()[i].second->view,
                          3e-6);
    }
    expect_near_largest(found.dlog_rates.view, expected.dlog_rates.view, 3e-6);
  }
}

TEST_P(RecurrentGradientTest, OfSelectiveScanHasTheSameBitsWithThreadsAndNeighbours) {
  for (const NamedScan& one : scan_cases()) {
    SCOPED_TRACE(one.shape.channels);
    ScanBackwardCase expected(memory_, one.shape, one.lengths);
    expected.run(ops());
    for (const auto& other : with_more_threads()) {
      ScanBackwardCase found(memory_, one.shape, one.lengths);
      found.run(*other->recurrent_gradients());
      for (size_t i = 0; i < found.gradients().size(); ++i) {
        EXPECT_SAME_BITS(to_vector(found.gradients()[i].second->view),
                         to_vector(expected.gradients()[i].second->view))
            << found.gradients()[i].first;
      }
      EXPECT_SAME_BITS(to_vector(found.dlog_rates.view), to_vector(expected.dlog_rates.view));
    }
    // Each sequence in a call of its own.
    ScanBackwardCase alone(memory_, one.shape, one.lengths);
    const std::vector<SequenceRows> all = alone.sequences;
    for (const SequenceRows& own : all) {
      alone.sequences = {own};
      alone.run(ops());
      for (size_t i = 0; i < alone.gradients().size(); ++i) {
        const auto rows_of = [&](const OwnedTensor& gradient) {
          return to_vector(gradient.view.slice(0, own.first_row, own.first_row + own.num_rows));
        };
        EXPECT_SAME_BITS(rows_of(*alone.gradients()[i].second),
                         rows_of(*expected.gradients()[i].second));
      }
    }
    EXPECT_SAME_BITS(to_vector(alone.dlog_rates.view), to_vector(expected.dlog_rates.view));
    ScanBackwardCase frozen(memory_, one.shape, one.lengths);
    frozen.wants_rates = false;
    frozen.run(ops());
    EXPECT_SAME_BITS(to_vector(frozen.dx.view), to_vector(expected.dx.view));
  }
}

// A decay that leaves nothing of what was before, as gates make it.
TEST_P(RecurrentGradientTest, OfDeltaRuleIsFiniteWhereAllIsForgotten) {
  DeltaBackwardCase delta(memory_, {.key_heads = 1, .value_heads = 1, .key_dim = 8, .value_dim = 8},
                          {50}, false);
  std::fill_n(delta.log_decay.view.elements<float>(), 50, -90.0f);
  delta.beta.view.elements<float>()[20] = 0.0f;
  DeltaBackwardCase expected = DeltaBackwardCase(memory_, delta.shape, {50}, false);
  copy_elements(delta.log_decay.view, expected.log_decay.view);
  copy_elements(delta.beta.view, expected.beta.view);
  delta.run(ops());
  expected.run(*make_reference_backend()->recurrent_gradients());
  for (const size_t i : {size_t{0}, size_t{1}, size_t{2}, size_t{4}}) {
    expect_near_largest(delta.gradients()[i].second->view, expected.gradients()[i].second->view,
                        3e-6);
  }
  for (const float slope : to_vector(delta.dlog_decay.view)) EXPECT_LT(std::abs(slope), 1e-6f);
}

TEST_P(RecurrentGradientTest, OfConvolutionsAreTheirDerivatives) {
  const auto reference = make_reference_backend();
  const std::vector<SequenceRows> sequences = {{0, 1}, {1, 3}, {4, 30}};
  for (const ConvolutionShape& shape :
       {ConvolutionShape{.channels = 7, .taps = 4}, ConvolutionShape{.channels = 600, .taps = 3}}) {
    const Extents extents = {34, shape.channels};
    const OwnedTensor x = random_tensor(memory_, DType::f32, extents, 1);
    const OwnedTensor taps = random_tensor(memory_, DType::f32, {shape.taps, shape.channels}, 2);
    const OwnedTensor dout = random_tensor(memory_, DType::f32, extents, 3);
    const OwnedTensor dx = allocate_tensor(memory_, DType::f32, extents);
    const OwnedTensor expected = allocate_tensor(memory_, DType::f32, extents);
    reference->recurrent_gradients()->short_convolution_gradient(shape, taps.view, dout.view,
                                                                 sequences, expected.view);
    const OwnedTensor states = allocate_tensor(memory_, DType::f32, {3, shape.state_elements()});
    const OwnedTensor open_rows = allocate_tensor(memory_, DType::f32, {3, shape.open_elements()});
    const StateMemory memory{.states = states.view, .open_rows = open_rows.view};
    const OwnedTensor out = allocate_tensor(memory_, DType::f32, extents);
    const StateSlice slices[] = {{.first_row = 0, .num_rows = 1, .block = 0},
                                 {.first_row = 1, .num_rows = 3, .block = 1, .open_block = 1},
                                 {.first_row = 4, .num_rows = 30, .block = 2, .open_block = 2}};
    expect_gradient("x", x.view, expected.view, [&] {
      reference->recurrent()->short_convolution(shape, x.view, {.taps = taps.view}, {slices},
                                                memory, out.view);
      return weighted_sum(out.view, dout.view);
    });
    std::vector<float> first;
    for (const auto& by : backends()) {
      by->recurrent_gradients()->short_convolution_gradient(shape, taps.view, dout.view, sequences,
                                                            dx.view);
      expect_near_largest(dx.view, expected.view, 1e-6);
      if (first.empty()) first = to_vector(dx.view);
      EXPECT_SAME_BITS(to_vector(dx.view), first);
    }
  }
}

TEST_P(RecurrentGradientTest, OfDecayGatesAreTheirDerivatives) {
  const auto reference = make_reference_backend();
  const Extents extents = {9, 21};
  const OwnedTensor x = random_tensor(memory_, DType::f32, extents, 1, 8.0f);
  const OwnedTensor bias = random_tensor(memory_, DType::f32, {21}, 2, 2.0f);
  const OwnedTensor rates = random_tensor(memory_, DType::f32, {21}, 3, 4.0f);
  const OwnedTensor dout = random_tensor(memory_, DType::f32, extents, 4);
  const OwnedTensor dx = allocate_tensor(memory_, DType::f32, extents);
  const OwnedTensor expected = allocate_tensor(memory_, DType::f32, extents);
  for (const GateRange& range : {GateRange{}, GateRange{.low = 0.01f, .high = 3.0f}}) {
    const DecayGatesInputs in{
        .x = x.view, .bias = bias.view, .rates = rates.view, .range = range, .dout = dout.view};
    reference->recurrent_gradients()->decay_gates_gradient(in, expected.view);
    expect_gradient("x", x.view, expected.view, [&] {
      double loss = 0.0;
      for (int64_t r = 0; r < 9; ++r) {
        for (int64_t h = 0; h < 21; ++h) {
          const double sum = double{x.view.row<float>(r)[h]} + double{bias.view.row<float>(0)[h]};
          const double gate =
              std::clamp(std::log1p(std::exp(sum)), double{range.low}, double{range.high});
          loss -=
              double{rates.view.elements<float>()[h]} * gate * double{dout.view.row<float>(r)[h]};
        }
      }
      return loss;
    });
    ops().decay_gates_gradient(in, dx.view);
    expect_near_largest(dx.view, expected.view, 1e-6);
  }
  EXPECT_GT(std::count(dx.view.elements<float>(), dx.view.elements<float>() + 189, 0.0f), 50);
}

PL_TEST_EVERY_ISA(RecurrentGradientTest);

}  // namespace
}  // namespace paceline
