#include "cli/figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cli/model_opening.h"

namespace paceline {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Figure, HasThreeDigitsAndGroups) {
  EXPECT_EQ(figure(0), "0");
  EXPECT_EQ(figure(12345), "12,345");
  EXPECT_EQ(figure(1234567.8), "1,234,568");
  EXPECT_EQ(figure(999.4), "999");
  EXPECT_EQ(figure(999.5), "1,000");
  EXPECT_EQ(figure(59.34), "59.3");
  EXPECT_EQ(figure(99.96), "100");
  EXPECT_EQ(figure(9.996), "10.0");
  EXPECT_EQ(figure(8.8), "8.80");
  EXPECT_EQ(figure(0.00123), "0.00123");
  EXPECT_EQ(figure(-1234), "-1,234");
  EXPECT_EQ(figure(kNan), "-");
}

TEST(Figure, NeverHasAnExponent) {
  EXPECT_EQ(figure(1e21), "1,000,000,000,000,000,000,000");
  EXPECT_EQ(figure(1e-9), "0.000000");
  for (int power = -30; power < 30; ++power) {
    const double value = 7.36 * std::pow(10.0, power);
    for (const std::string& text : {figure(value), figure_of(value, ""), duration_figure(value)}) {
      EXPECT_EQ(text.find('e'), std::string::npos) << text;
    }
  }
}

TEST(FigureOf, ChoosesThePrefixAfterRounding) {
  EXPECT_EQ(figure_of(999.7e9, "FLOP/s"), "1.00 TFLOP/s");
  EXPECT_EQ(figure_of(999.4e9, "FLOP/s"), "999 GFLOP/s");
  EXPECT_EQ(figure_of(44.13e9, "B/s"), "44.1 GB/s");
  EXPECT_EQ(figure_of(12, "B"), "12.0 B");
  EXPECT_EQ(figure_of(0.5, "B/s"), "0.500 B/s");
  EXPECT_EQ(figure_of(5e18, "B"), "5,000 PB");
  EXPECT_EQ(figure_of(kNan, "B"), "-");
}

TEST(DurationFigure, ChoosesTheUnitAfterRounding) {
  EXPECT_EQ(duration_figure(3.79), "3.79 s");
  EXPECT_EQ(duration_figure(0.9994), "999 ms");
  EXPECT_EQ(duration_figure(0.9996), "1.00 s");
  EXPECT_EQ(duration_figure(0.0415), "41.5 ms");
  EXPECT_EQ(duration_figure(8.5e-7), "850 ns");
  EXPECT_EQ(duration_figure(41.5e-6), "41.5 µs");
  EXPECT_EQ(duration_figure(1200), "1,200 s");
  EXPECT_EQ(duration_figure(0), "0 s");
  EXPECT_EQ(duration_figure(kNan), "-");
}

TEST(BytesText, ChoosesTheUnitAfterRounding) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(1023.4 * 1024), "1023 KiB");
  EXPECT_EQ(bytes_text(1023.6 * 1024), "1.0 MiB");
  EXPECT_EQ(bytes_text(12.34 * 1048576), "12.3 MiB");
}

TEST(ShareFigure, IsPercent) {
  EXPECT_EQ(share_figure(0.617), "62%");
  EXPECT_EQ(share_figure(0.0414), "4.1%");
  EXPECT_EQ(share_figure(0.0996), "10%");
  EXPECT_EQ(share_figure(12.34), "1,234%");
}

TEST(DraftFigures, SayHowManyTokensAStepGave) {
  EXPECT_EQ(draft_figures({.drafted = 1200, .accepted = 900, .output = 1500}),
            "drafted 1,200 tokens, accepted 900 (75%), 2.50 tokens a step");
  EXPECT_EQ(draft_figures({.drafted = 1, .accepted = 0, .output = 4}),
            "drafted 1 token, accepted 0 (0.0%), 1.00 tokens a step");
  EXPECT_EQ(draft_figures({.drafted = 3, .accepted = 3, .output = 3}),
            "drafted 3 tokens, accepted 3 (100%), 3.00 tokens a step")
      << "an output that ends inside a draft";
}

TEST(DrafterText, NamesTheDrafterAndItsMemory) {
  EXPECT_EQ(drafter_text({}), "");
  EXPECT_EQ(drafter_text({.name = "ngram", .max_tokens = 1}),
            "drafter: ngram, drafts up to 1 token a step");
  EXPECT_EQ(drafter_text({.name = "small",
                          .max_tokens = 8,
                          .weight_bytes = size_t{3} << 19,
                          .kv_cache_bytes = size_t{2} << 20}),
            "draft model: small, weights 1.5 MiB, keys and values 2.0 MiB; drafts up to 8 tokens a "
            "step");
}

}  // namespace
}  // namespace paceline
