// Draws the panels of bench's picture, each into a given box.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_measure.h"
#include "cli/svg_writer.h"

namespace paceline {

using BenchReports = std::vector<BenchReport>;

// The CSS class (the colour) of a variant, by its index in the reports; and the mark of each test.
std::string variant_class(size_t report_index);
void draw_mark(SvgWriter& svg, BenchTest test, SvgPoint center);

// Operations per second by operations per byte of weights, under the ceilings of this machine.
void draw_roofline(SvgWriter& svg, const BenchReports& reports, const SvgBox& box);

// The size that a test's time is drawn against, with the others fixed.
enum class BenchAxis : uint8_t { prompt_tokens, sequences };
struct GrowthPanel {
  BenchTest test = BenchTest::prefill;
  BenchAxis axis = BenchAxis::prompt_tokens;
  bool operator==(const GrowthPanel&) const = default;
};
// A panel for each test and axis with at least two values.
std::vector<GrowthPanel> growth_panels(const BenchReports& reports);
void draw_growth(SvgWriter& svg, const BenchReports& reports, const GrowthPanel& panel,
                 const SvgBox& box);

// A panel for each variant and number of sequences with replayed drafts; a curve for each length.
struct SpeculationPanel {
  size_t report_index = 0;
  int64_t sequences = 1;
  bool operator==(const SpeculationPanel&) const = default;
};
std::vector<SpeculationPanel> speculation_panels(const BenchReports& reports);
void draw_speculation(SvgWriter& svg, const BenchReports& reports, const SpeculationPanel& panel,
                      const SvgBox& box);

// Time to load and resident memory, as bars for each variant.
void draw_loading(SvgWriter& svg, const BenchReports& reports, const SvgBox& box);

}  // namespace paceline
