// StreamTuner chooses how products of a few rows read their weights; no choice changes a bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "kernels/cpu/stream_tuner.h"
#include "tests/kernels/every_isa.h"
#include "tests/kernels/op_inputs.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

// Sets PACELINE_STREAMS while it lives.
class ChosenStreams {
 public:
  explicit ChosenStreams(const std::string& text) { ::setenv("PACELINE_STREAMS", text.c_str(), 1); }
  explicit ChosenStreams(const WeightStreams& streams)
      : ChosenStreams(std::to_string(streams.panels) + "x" +
                      std::to_string(streams.prefetch_bytes)) {}
  ~ChosenStreams() { ::unsetenv("PACELINE_STREAMS"); }
  ChosenStreams(const ChosenStreams&) = delete;
  ChosenStreams& operator=(const ChosenStreams&) = delete;
};

class Streams : public IsaTest {
 protected:
  std::vector<float> multiply(Backend& by, const OwnedTensor& x, const PackedMatrix& w,
                              int64_t first, int64_t last) {
    const OwnedTensor out = allocate_tensor(memory_, DType::f32, {last - first, w.n});
    by.matmul(x.view.slice(0, first, last), w, nullptr, out.view);
    return to_vector(out.view);
  }
};

// Several segments and a panel that isn't full; sixteen rows don't stream.
TEST_P(Streams, EveryChoiceHasTheBitsOfManyRows) {
  constexpr int64_t kManyRows = 16, kColumns = 9 * 32 + 5, kLeastK = 2100;
  std::vector<WeightStreams> choices = stream_candidates(8);
  choices.push_back({1, 0});
  for (const WeightType& type : cases_to_run(weight_types(), 0, 3)) {
    const PackedMatrix w =
        random_matrix(memory_, threads(), type, kColumns, type.row_length(kLeastK), 3);
    const OwnedTensor x = random_tensor(memory_, DType::f32, {kManyRows, w.k}, 1);
    const std::vector<float> all = multiply(backend(), x, w, 0, kManyRows);
    for (const WeightStreams& streams : choices) {
      const ChosenStreams chosen(streams);
      const auto by = make_cpu_backend(GetParam(), threads(), memory_);
      for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8}) {
        const std::vector<float> expected(all.begin(), all.begin() + rows * w.n);
        EXPECT_SAME_BITS(multiply(*by, x, w, 0, rows), expected)
            << type.name << ", " << rows << " rows, " << streams.panels << " panels, "
            << streams.prefetch_bytes << " bytes ahead";
      }
    }
  }
}

// While choices are tried and after.
TEST_P(Streams, MeasuringShowsInNoBit) {
  const WeightType& type = weight_types()[2];
  const PackedMatrix w = random_matrix(memory_, threads(), type, 512, 2048, 3);
  const OwnedTensor x = random_tensor(memory_, DType::f32, {1, w.k}, 1);
  const auto by = make_cpu_backend(GetParam(), threads(), memory_);
  const std::vector<float> first = multiply(*by, x, w, 0, 1);
  for (int i = 0; i < 100; ++i) EXPECT_SAME_BITS(multiply(*by, x, w, 0, 1), first);
  ASSERT_EQ(by->measured_choices().size(), 1u);
  EXPECT_NE(by->measured_choices()[0].find("bfloat16 512 x 2048, 1 row: "), std::string::npos)
      << by->measured_choices()[0];
}

PL_TEST_EVERY_ISA(Streams);

PackedMatrix matrix_of_bytes(int64_t bytes) {
  PackedMatrix matrix;
  matrix.dtype = DType::f32;
  matrix.k = 1024;
  matrix.n = bytes / 4 / matrix.k;
  return matrix;
}

// A product that takes longer with any choice but one.
WeightStreams run_product(StreamTuner& tuner, const PackedMatrix& matrix,
                          const WeightStreams& fastest) {
  const StreamTuner::Product product(tuner, matrix, matrix.bytes(), 1, 8);
  const bool is_fast = product.streams() == fastest;
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(is_fast ? 20 : 400);
  while (std::chrono::steady_clock::now() < end) {
  }
  return product.streams();
}

TEST(StreamTuner, TriesAllAndKeepsTheFastest) {
  const PackedMatrix matrix = matrix_of_bytes(4 << 20);
  const std::vector<WeightStreams> candidates = stream_candidates(8);
  for (const WeightStreams& fastest : {candidates.front(), candidates[3], candidates.back()}) {
    StreamTuner tuner({});
    std::vector<WeightStreams> tried;
    for (size_t i = 0; i < candidates.size(); ++i) {
      tried.push_back(run_product(tuner, matrix, fastest));
    }
    EXPECT_EQ(tried, candidates);
    EXPECT_NE(tuner.describe().at(0).find("still being measured"), std::string::npos);
    for (size_t i = 0; i < 4 * candidates.size(); ++i) run_product(tuner, matrix, fastest);
    EXPECT_EQ(run_product(tuner, matrix, fastest), fastest);
    const std::string verdict = fmt::format("the fastest of {} choices", candidates.size());
    EXPECT_NE(tuner.describe().at(0).find(verdict), std::string::npos);
  }
}

TEST(StreamTuner, MeasuresEachShapeApartAndSmallOnesNever) {
  StreamTuner tuner({});
  const PackedMatrix large = matrix_of_bytes(4 << 20), other = matrix_of_bytes(8 << 20);
  run_product(tuner, large, {});
  run_product(tuner, large, {});
  run_product(tuner, other, {});
  EXPECT_EQ(tuner.describe().size(), 2u);
  EXPECT_EQ(run_product(tuner, matrix_of_bytes(1 << 16), {}), WeightStreams{});
  EXPECT_EQ(tuner.describe().size(), 2u);
}

TEST(StreamTuner, TriesWhatTheKernelCanDo) {
  for (const WeightStreams& streams : stream_candidates(2)) EXPECT_LE(streams.panels, 2);
  EXPECT_GT(stream_candidates(2).size(), stream_candidates(1).size());
  StreamTuner tuner({});
  const PackedMatrix matrix = matrix_of_bytes(4 << 20);
  const StreamTuner::Product product(tuner, matrix, matrix.bytes(), 512, 0);
  EXPECT_EQ(product.streams(), WeightStreams{});
  EXPECT_TRUE(tuner.describe().empty());
}

TEST(StreamTuner, IsFixedByTheEnvironment) {
  EXPECT_FALSE(fixed_streams().has_value());
  const ChosenStreams chosen("4x2048");
  EXPECT_EQ(fixed_streams(), (WeightStreams{4, 2048}));
  StreamTuner tuner(fixed_streams());
  const PackedMatrix matrix = matrix_of_bytes(4 << 20);
  EXPECT_EQ(run_product(tuner, matrix, {}), (WeightStreams{4, 2048}));
  EXPECT_EQ(tuner.describe().at(0),
            "PACELINE_STREAMS: 4 panels at a time, prefetch 2048 bytes ahead");
}

TEST(StreamTuner, RefusesWhatIsNoChoice) {
  for (const char* const text : {"4", "x", "4x", "x4096", "0x4096", "9x4096", "3x4096", "1x-1",
                                 "1x9999999", "1x4096 ", "auto"}) {
    const ChosenStreams chosen{std::string(text)};
    EXPECT_THROW(fixed_streams(), Error) << text;
  }
}

}  // namespace
}  // namespace paceline
