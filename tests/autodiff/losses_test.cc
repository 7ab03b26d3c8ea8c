// Losses, whole and in chunks.
#include "autodiff/losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/chunked_loss.h"
#include "autodiff/elementwise.h"
#include "autodiff/matmul.h"
#include "autodiff/new_arrays.h"
#include "autodiff/reductions.h"
#include "autodiff/shapes.h"
#include "autodiff/transforms.h"
#include "tests/autodiff/operation_case.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

class Losses : public testing::Test {
 protected:
  Memory memory_;
  Context context_{memory_};
};

const std::vector<int32_t> kTargets = {3, 0, 2, 1, 4, 4};
const std::vector<uint8_t> kMask = {1, 0, 1, 1, 0, 1};

double token_loss(const NaiveArray& logits, size_t row) {
  double sum = 0.0;
  const auto at = static_cast<int64_t>(row);
  for (int64_t i = 0; i < 5; ++i) sum += std::exp(logits.at({at, i}));
  return std::log(sum) - logits.at({at, kTargets[row]});
}

NaiveArray naive_cross_entropy(const NaiveArray& logits, const std::vector<uint8_t>& mask) {
  double sum = 0.0, count = 0.0;
  for (size_t row = 0; row < kTargets.size(); ++row) {
    if (mask[row] == 0) continue;
    sum += token_loss(logits, row);
    count += 1.0;
  }
  return {Extents(), {sum / count}};
}

TEST_F(Losses, CrossEntropy) {
  const Array targets = from_integers(context_, kTargets, {6});
  const Array mask = from_mask(context_, kMask, {6});
  check_operation({.name = "token_losses",
                   .operation = [&](const Arrays& x) { return token_losses(x[0], targets); },
                   .definition =
                       [](const NaiveArrays& x) {
                         NaiveArray losses = naive_zeros({6});
                         for (size_t i = 0; i < 6; ++i) losses.values[i] = token_loss(x[0], i);
                         return losses;
                       },
                   .shapes = {{6, 5}}});
  check_operation({.name = "cross_entropy",
                   .operation = [&](const Arrays& x) { return cross_entropy(x[0], targets); },
                   .definition =
                       [](const NaiveArrays& x) {
                         return naive_cross_entropy(x[0], std::vector<uint8_t>(6, 1));
                       },
                   .shapes = {{6, 5}},
                   .low = -4.0f,
                   .high = 4.0f});
  check_operation(
      {.name = "masked_cross_entropy",
       .operation = [&](const Arrays& x) { return masked_cross_entropy(x[0], targets, mask); },
       .definition = [](const NaiveArrays& x) { return naive_cross_entropy(x[0], kMask); },
       .shapes = {{6, 5}}});
  const Array by_batch = from_integers(context_, kTargets, {2, 3});
  const Array logits = normal(context_, {6, 5}, {1});
  EXPECT_EQ(to_scalar(cross_entropy(reshape(logits, {2, 3, 5}), by_batch)),
            to_scalar(cross_entropy(logits, targets)));
}

TEST_F(Losses, MeanSquaredError) {
  check_operation({.name = "mse",
                   .operation = [](const Arrays& x) { return mse(x[0], x[1]); },
                   .definition =
                       [](const NaiveArrays& x) {
                         double sum = 0.0;
                         for (size_t i = 0; i < x[0].values.size(); ++i) {
                           sum += std::pow(x[0].values[i] - x[1].values[i], 2.0);
                         }
                         return NaiveArray{Extents(), {sum / 12.0}};
                       },
                   .shapes = {{3, 4}, {3, 4}}});
}

TEST_F(Losses, MaskedPositionsCountForNothing) {
  std::vector<float> values = to_floats(normal(context_, {6, 5}, {1}));
  values[5] = std::nanf("");  // in a row that is masked out
  const Array logits = from_values(context_, values, {6, 5});
  const Array targets = from_integers(context_, kTargets, {6});
  const Array mask = from_mask(context_, kMask, {6});
  const auto loss = [&](const Arrays& x) {
    return Arrays{masked_cross_entropy(x[0], targets, mask)};
  };
  EXPECT_TRUE(std::isfinite(to_scalar(loss({logits})[0])));
}

// hidden weight^T, as a head of the test's own: it counts the rows of logits that exist at a time.
class CountingHead final : public LogitsHead {
 public:
  Array logits(const Array& hidden, const Arrays& weights) const override {
    most_rows_ = std::max(most_rows_, hidden.size(0));
    return linear_.logits(hidden, weights);
  }
  Array take_gradient(const Array& hidden, const Arrays& weights, const Array& logits_gradient,
                      std::span<const Tensor> totals) const override {
    return linear_.take_gradient(hidden, weights, logits_gradient, totals);
  }
  int64_t most_rows() const { return most_rows_; }

 private:
  LinearHead linear_;
  mutable int64_t most_rows_ = 0;
};

class ChunkedLosses : public Losses {
 protected:
  static constexpr int64_t kRows = 3 * kSumSegment + 11, kWidth = 7, kVocab = 37;

  ChunkedLosses() {
    std::vector<int32_t> ids;
    std::vector<uint8_t> counted;
    for (int32_t i = 0; i < kRows; ++i) {
      ids.push_back(i * 13 % static_cast<int32_t>(kVocab));
      counted.push_back(i % 3 != 0);
    }
    targets_ = from_integers(context_, ids, {kRows});
    mask_ = from_mask(context_, counted, {kRows});
  }

  HeadRows head_rows(const Array& hidden, const Array& weight, const Array& mask,
                     int64_t chunk_rows) const {
    return {.hidden = hidden,
            .weights = {weight},
            .targets = targets_,
            .mask = mask,
            .head = head_,
            .chunk_rows = chunk_rows};
  }

  // The loss and its gradients, in chunks of `rows`; 0: of all logits at once.
  ValueAndGrad compute(int64_t rows, const Array& mask) {
    const auto loss = [&](const Arrays& in) {
      if (rows > 0) {
        return Arrays{chunked_cross_entropy(head_rows(in[0], in[1], mask, rows))};
      }
      const Array logits = matmul(in[0], transpose(in[1], 0, 1));
      return Arrays{mask.is_defined() ? masked_cross_entropy(logits, targets_, mask)
                                      : cross_entropy(logits, targets_)};
    };
    return value_and_grad(loss, {0, 1})({hidden_, weight_});
  }

  Array hidden_ = normal(context_, {kRows, kWidth}, {1});
  Array weight_ = normal(context_, {kVocab, kWidth}, {2});
  Array targets_;
  Array mask_;
  std::shared_ptr<CountingHead> head_ = std::make_shared<CountingHead>();
};

TEST_F(ChunkedLosses, AreThoseOfAllLogits) {
  for (const Array& mask : {Array(), mask_}) {
    const ValueAndGrad whole = compute(0, mask);
    const ValueAndGrad chunked = compute(kSumSegment, mask);
    EXPECT_EQ(head_->most_rows(), kSumSegment);
    EXPECT_NEAR(to_scalar(chunked.value), to_scalar(whole.value), 1e-5);
    for (size_t i = 0; i < 2; ++i) {
      const auto found = to_floats(chunked.gradients[i]), expected = to_floats(whole.gradients[i]);
      for (size_t j = 0; j < found.size(); ++j) ASSERT_NEAR(found[j], expected[j], 1e-6) << j;
    }
  }
}

TEST_F(ChunkedLosses, DontDependOnTheChunks) {
  const ValueAndGrad expected = compute(kSumSegment, mask_);
  for (const int64_t rows : {int64_t{1}, 2 * kSumSegment, 3 * kSumSegment, int64_t{1000}}) {
    const ValueAndGrad found = compute(rows, mask_);
    EXPECT_EQ(to_scalar(found.value), to_scalar(expected.value));
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(to_floats(found.gradients[i]), to_floats(expected.gradients[i])) << rows;
    }
  }
  const auto alone = chunked_cross_entropy(head_rows(hidden_, weight_, mask_, 64));
  EXPECT_EQ(to_scalar(alone), to_scalar(expected.value));  // without a gradient
}

TEST_F(ChunkedLosses, TangentsAndScaledCotangents) {
  const auto loss = [&](const Arrays& in) {
    return Arrays{0.25f * chunked_cross_entropy(head_rows(in[0], in[1], mask_, 64))};
  };
  const Arrays tangents = {normal(context_, {kRows, kWidth}, {3}),
                           normal(context_, {kVocab, kWidth}, {4})};
  const ValueAndGrad found = value_and_grad(loss, {0, 1})({hidden_, weight_});
  double expected = 0.0;
  for (size_t i = 0; i < 2; ++i) {
    const auto gradient = to_floats(found.gradients[i]), tangent = to_floats(tangents[i]);
    for (size_t j = 0; j < gradient.size(); ++j) expected += double{gradient[j]} * tangent[j];
  }
  EXPECT_NEAR(to_scalar(jvp(loss, {hidden_, weight_}, tangents).tangents[0]), expected, 1e-5);
  const std::vector<float> half = to_floats(compute(64, mask_).gradients[0]);
  for (size_t j = 0; j < half.size(); ++j) {
    ASSERT_FLOAT_EQ(to_floats(found.gradients[0])[j], 0.25f * half[j]);
  }
}

TEST_F(ChunkedLosses, HoldOneChunkOfLogits) {
  constexpr int64_t kWide = 4096;
  weight_ = normal(context_, {kWide, kWidth}, {2});
  memory_.reset_peak();
  const size_t before = memory_.stats().active_bytes;
  compute(kSumSegment, Array());
  const size_t chunked = memory_.stats().peak_bytes - before;
  memory_.reset_peak();
  compute(0, Array());
  const size_t whole = memory_.stats().peak_bytes - before;
  const size_t logits_bytes = static_cast<size_t>(kRows * kWide) * sizeof(float);
  EXPECT_LT(chunked, logits_bytes);
  EXPECT_GT(whole, 2 * logits_bytes);
}

// Parts of a batch, as a training step adds them up.
TEST_F(ChunkedLosses, OfPartsOfABatchAddUpToTheSameBits) {
  const ValueAndGrad whole = compute(kSumSegment, mask_);
  float counted = 0.0f;
  for (const float value : to_floats(mask_)) counted += value;
  for (const int64_t part_rows : {kSumSegment, 2 * kSumSegment}) {
    Array totals = zeros(context_, {kVocab, kWidth});
    Arrays losses, gradients;
    for (int64_t begin = 0; begin < kRows; begin += part_rows) {
      const auto part = [&](const Array& x) {
        return slice(x, {0, begin, std::min(kRows, begin + part_rows)});
      };
      HeadRows rows = head_rows(part(hidden_), weight_, part(mask_), 1000);
      rows.targets = part(targets_);
      const std::vector<Tensor> views = {totals.writable()};
      const PartOfLoss found = add_chunked_gradients(rows, 1.0f / counted, views);
      losses.push_back(found.losses);
      gradients.push_back(found.hidden_gradient);
    }
    EXPECT_EQ(to_floats(totals), to_floats(whole.gradients[1])) << part_rows;
    EXPECT_EQ(to_floats(concatenate(gradients, 0)), to_floats(whole.gradients[0])) << part_rows;
    EXPECT_EQ(to_scalar(scale(sum(concatenate(losses, 0)), 1.0f / counted)),
              to_scalar(whole.value));
  }
}

TEST_F(ChunkedLosses, Errors) {
  HeadRows rows = head_rows(hidden_, weight_, Array(), 64);
  const auto compute_rows = [&] { chunked_cross_entropy(rows); };
  rows.targets = from_integers(context_, kTargets, {6});
  expect_error(ErrorCode::invalid, {"chunked_cross_entropy", "[203, 7] and [6]"}, compute_rows);
  rows = head_rows(hidden_, weight_, Array(), 0);
  expect_error(ErrorCode::invalid, {"chunked_cross_entropy", "chunks of 0 rows"}, compute_rows);
  rows = head_rows(hidden_, weight_, zeros(context_, {kRows}, DType::i8), 64);
  expect_error(ErrorCode::invalid, {"chunked_cross_entropy", "none of 203"}, compute_rows);
  rows = head_rows(hidden_, zeros(context_, {20, kWidth}), Array(), 64);
  expect_error(ErrorCode::invalid, {"chunked_cross_entropy", "target 26 at row 2", "below 20"},
               compute_rows);
  const auto gradient = [&](const Arrays& in) {
    const auto loss = [&](const Arrays& at) {
      return Arrays{chunked_cross_entropy(head_rows(at[0], weight_, mask_, 64))};
    };
    return value_and_grad(loss)(in).gradients;
  };
  expect_error(ErrorCode::unsupported, {"chunked_cross_entropy", "use cross_entropy"},
               [&] { jvp(gradient, {hidden_}, {hidden_}); });
}

TEST_F(Losses, Errors) {
  const Array logits = zeros(context_, {6, 5});
  const Array targets = from_integers(context_, kTargets, {6});
  expect_error(ErrorCode::invalid, {"masked_cross_entropy", "all 6 positions", "at least one"},
               [&] { masked_cross_entropy(logits, targets, zeros(context_, {6}, DType::i8)); });
  expect_error(ErrorCode::invalid, {"masked_cross_entropy", "[6, 5] and [6] and [5]"},
               [&] { masked_cross_entropy(logits, targets, zeros(context_, {5}, DType::i8)); });
  expect_error(ErrorCode::invalid, {"token_losses", "index 4", "below 4"}, [&] {
    cross_entropy(zeros(context_, {6, 4}), targets);
  });
  expect_error(ErrorCode::invalid, {"token_losses", "[6, 5] and [5]"},
               [&] { token_losses(logits, zeros(context_, {5}, DType::i32)); });
  expect_error(ErrorCode::invalid, {"cross_entropy", "[0, 5] and [0]"}, [&] {
    cross_entropy(zeros(context_, {0, 5}), zeros(context_, {0}, DType::i32));
  });
  expect_error(ErrorCode::invalid, {"mse", "[6, 5] and [6]"},
               [&] { mse(logits, zeros(context_, {6})); });
}

}  // namespace
}  // namespace paceline::autodiff
