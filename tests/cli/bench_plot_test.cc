#include "cli/bench_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench_panels.h"
#include "cli/plot_labels.h"
#include "tests/cli/well_formed.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

BenchRow row(const BenchRun& run, double seconds, double intensity) {
  return {.run = run,
          .runs = 3,
          .tokens = 1 / seconds,
          .unit_seconds = seconds,
          .operations = intensity * 1e10,
          .read_bytes = 1e10,
          .ceilings = {.read_bytes = 2e10, .operations = 1e12}};
}

BenchReport report(std::string name) {
  return {
      .name = std::move(name),
      .weight_format = "bfloat16",
      .products = {.isa = Isa::avx512bf16, .kind = ProductKind::bf16},
      .threads = 2,
      .load_seconds = 0.1,
      .resident_bytes = 1000000,
      .rows = {
          row({.test = BenchTest::prefill, .prompt_tokens = 128}, 0.1, 20),
          row({.test = BenchTest::prefill, .prompt_tokens = 512}, 0.4, 30),
          row({.test = BenchTest::decode, .prompt_tokens = 1, .output_tokens = 64}, 0.01, 1),
          row({.test = BenchTest::batch, .prompt_tokens = 128, .output_tokens = 64}, 0.01, 1),
          row({.test = BenchTest::batch, .prompt_tokens = 128, .output_tokens = 64, .sequences = 8},
              0.02, 8)}};
}

std::string draw(const BenchReports& reports) {
  return draw_bench({.processor = "A <fast> & small one", .isa = Isa::avx512bf16, .threads = 2},
                    reports);
}

TEST(BenchPlot, ShowsPointsCeilingsAndGrowth) {
  const std::string svg = draw({report("one"), report("two")});
  EXPECT_EQ(XmlCheck(svg).run(), "");
  for (const std::string_view part :
       {"A &lt;fast&gt; &amp; small one", "one, bfloat16, 2 threads", "vdpbf16ps 1.00 TOP/s",
        "read bandwidth 20.0 GB/s", "prefill 512", "tokens of the prompt", "time of a step",
        "sequences", "loading", "prefers-color-scheme: dark"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(BenchPlot, SaysTheThreadsWhereTheyDiffer) {
  BenchReport other = report("one");
  other.threads = 1;
  EXPECT_THAT(draw({report("one"), other}), HasSubstr("vdpbf16ps 1.00 TOP/s, 1 thread<"));
}

TEST(BenchPlot, DrawsEvenWhatHasNoSpeed) {
  BenchReport empty = report("none");
  empty.rows = {{.run = {.test = BenchTest::memory}}};
  empty.load_seconds = 0;
  empty.resident_bytes = 0;
  for (const BenchReports& reports : {BenchReports{}, BenchReports{empty}}) {
    const std::string svg = draw(reports);
    EXPECT_EQ(XmlCheck(svg).run(), "");
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
  }
}

BenchRow speculated(int64_t sequences, double acceptance, double speedup) {
  BenchRow one = row({.test = BenchTest::speculate,
                      .prompt_tokens = 128,
                      .output_tokens = 64,
                      .sequences = sequences,
                      .drafts = {.acceptance = acceptance, .lengths = {4}}},
                     0.01, 1);
  one.drafted = {{.limits = {.num_tokens = 4, .adapts = false}, .speedup = speedup},
                 {.limits = {.num_tokens = 8}, .speedup = 1.1 * speedup}};
  return one;
}

TEST(BenchPlot, ShowsSpeedUpsByAcceptanceForEachNumberOfSequences) {
  BenchReport one = report("one");
  one.rows = {speculated(1, 0.3, 1.1), speculated(1, 0.8, 2.1), speculated(16, 0.3, 0.9)};
  EXPECT_THAT(speculation_panels({one}),
              ElementsAre(SpeculationPanel{0, 1}, SpeculationPanel{0, 16}));
  EXPECT_THAT(growth_panels({one}), IsEmpty());
  const std::string svg = draw({one});
  EXPECT_EQ(XmlCheck(svg).run(), "");
  for (const std::string_view part :
       {"speed-up with drafts, 1 sequence, one", "speed-up with drafts, 16 sequences", "acceptance",
        ">k 4<", ">adaptive<"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(GrowthPanels, AreOfAxesWithSeveralValues) {
  EXPECT_THAT(growth_panels({report("one")}),
              ElementsAre(GrowthPanel{BenchTest::prefill, BenchAxis::prompt_tokens},
                          GrowthPanel{BenchTest::batch, BenchAxis::sequences}));
  EXPECT_THAT(growth_panels({}), IsEmpty());
}

TEST(PlotLabels, NeverOverlapNorLeaveTheirBox) {
  SvgWriter svg(200, 100, "");
  PlotLabels labels(svg, {0, 0, 200, 100});
  int placed = 0;
  for (int i = 0; i < 100; ++i) placed += labels.place("decode 64", {100, 50}) ? 1 : 0;
  EXPECT_GE(placed, 4);
  EXPECT_LE(placed, 6);
  EXPECT_FALSE(labels.place("a label that is far longer than the box is wide", {100, 10}));
  labels.keep_clear({0, 0, 200, 30});
  EXPECT_FALSE(labels.place_along("on the line", {190, 20}, {100, 20}));
  EXPECT_TRUE(labels.place_along("on the line", {190, 95}, {100, 95}));
}

}  // namespace
}  // namespace paceline
