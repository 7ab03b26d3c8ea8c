#include "cli/bench_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/bench_panels.h"
#include "cli/plot_scale.h"
#include "cli/svg_style.h"

namespace paceline {
namespace {

constexpr double kBenchPageWidth = 1040;
constexpr double kBenchLeft = 84;
constexpr double kBenchPlotWidth = kBenchPageWidth - kBenchLeft - 24;
constexpr double kRooflineHeight = 400;
constexpr double kGrowthHeight = 220;
constexpr double kLegendRow = 20;
constexpr double kBenchGap = 84;  // below a panel: ticks, the axis' name, the next heading
constexpr double kLoadingRow = 22;
constexpr double kMargin = 40;
constexpr size_t kNumColours = 8;

constexpr std::string_view kBenchLight = R"(
.label { font-size: 10px; }
.ceiling { fill: none; stroke: #5d6878; stroke-width: 1.5; stroke-dasharray: 6 3; }
.curve { fill: none; stroke-width: 2; }
.mark { stroke: #ffffff; stroke-width: 1; }
.plain { fill: #5d6878; }
.v0 { fill: #2f6fca; } .v0 .curve { stroke: #2f6fca; }
.v1 { fill: #d2691e; } .v1 .curve { stroke: #d2691e; }
.v2 { fill: #12876f; } .v2 .curve { stroke: #12876f; }
.v3 { fill: #a8327d; } .v3 .curve { stroke: #a8327d; }
.v4 { fill: #8a6d00; } .v4 .curve { stroke: #8a6d00; }
.v5 { fill: #6a58cc; } .v5 .curve { stroke: #6a58cc; }
.v6 { fill: #c22f42; } .v6 .curve { stroke: #c22f42; }
.v7 { fill: #55606f; } .v7 .curve { stroke: #55606f; }
)";

constexpr std::string_view kBenchDark = R"(
.ceiling { stroke: #9aa5b4; }
.mark { stroke: #181d25; }
.plain { fill: #9aa5b4; }
.v0 { fill: #6aa5f5; } .v0 .curve { stroke: #6aa5f5; }
.v1 { fill: #f09a55; } .v1 .curve { stroke: #f09a55; }
.v2 { fill: #35c4a4; } .v2 .curve { stroke: #35c4a4; }
.v3 { fill: #e57bc0; } .v3 .curve { stroke: #e57bc0; }
.v4 { fill: #d8b93c; } .v4 .curve { stroke: #d8b93c; }
.v5 { fill: #a598f5; } .v5 .curve { stroke: #a598f5; }
.v6 { fill: #ff7b8c; } .v6 .curve { stroke: #ff7b8c; }
.v7 { fill: #a7b2c0; } .v7 .curve { stroke: #a7b2c0; }
)";

// Corners of a mark around 0, in units of its size.
std::vector<SvgPoint> mark_corners(BenchTest test) {
  switch (test) {
    case BenchTest::decode:
      return {{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}};
    case BenchTest::batch:
      return {{0, -1.2}, {1.1, 0.8}, {-1.1, 0.8}};
    case BenchTest::mixed:
      return {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}};
    case BenchTest::classify:
      return {{0, 1.2}, {1.1, -0.8}, {-1.1, -0.8}};
    case BenchTest::cached:
      return {{-1.3, 0}, {-0.4, -0.4}, {0, -1.3}, {0.4, -0.4},
              {1.3, 0},  {0.4, 0.4},   {0, 1.3},  {-0.4, 0.4}};
    case BenchTest::speculate:
      return {{0, -1.1}, {1.1, -0.2}, {0.7, 1}, {-0.7, 1}, {-1.1, -0.2}};
    default:
      return {};
  }
}

std::string variant_name(const BenchReport& report) {
  return fmt::format("{}, {}, {} thread{}", report.name, report.weight_format, report.threads,
                     report.threads == 1 ? "" : "s");
}

// The legend of colours and marks: entries from left to right, in as many rows as they need.
class Legend {
 public:
  explicit Legend(double y) : y_(y) {}

  void add(std::string text, std::string css_class, std::optional<BenchTest> test) {
    const double width = text_width(text, 12) + 40;
    if (x_ + width > kBenchLeft + kBenchPlotWidth && x_ > kBenchLeft) next_row();
    entries_.push_back({std::move(text), std::move(css_class), test, {x_ + 6, y_ - 4}});
    x_ += width;
  }
  void next_row() {
    x_ = kBenchLeft;
    y_ += kLegendRow;
  }
  double bottom() const { return y_; }

  void draw(SvgWriter& svg) const {
    for (const Entry& entry : entries_) {
      svg.open_group(entry.css_class);
      if (entry.test) {
        draw_mark(svg, *entry.test, entry.at);
      } else {
        svg.rectangle("swatch", {entry.at.x - 5, entry.at.y - 5, 10, 10}, 2);
      }
      svg.close_group();
      svg.text("note", {entry.at.x + 12, entry.at.y + 4}, entry.text);
    }
  }

 private:
  struct Entry {
    std::string text;
    std::string css_class;
    std::optional<BenchTest> test;  // nothing: a colour
    SvgPoint at;                    // the middle of the mark
  };
  std::vector<Entry> entries_;
  double x_ = kBenchLeft;
  double y_;
};

Legend make_legend(const BenchReports& reports, double y) {
  Legend legend(y);
  std::vector<BenchTest> tests;
  for (size_t i = 0; i < reports.size(); ++i) {
    legend.add(variant_name(reports[i]), variant_class(i), std::nullopt);
    for (const BenchRow& row : reports[i].rows) {
      const bool is_known = std::find(tests.begin(), tests.end(), row.run.test) != tests.end();
      if (!is_known && row.tokens > 0) tests.push_back(row.run.test);
    }
  }
  legend.next_row();
  for (const BenchTest test : tests) legend.add(std::string(bench_test_name(test)), "plain", test);
  return legend;
}

// The panels below the roofline, two in a row.
SvgBox small_panel(size_t index, double top, double height) {
  const double width = (kBenchPlotWidth - kBenchLeft) / 2;
  const size_t row = index / 2;
  return {kBenchLeft + (index % 2 == 0 ? 0 : width + kBenchLeft),
          top + static_cast<double>(row) * (kGrowthHeight + kBenchGap), width, height};
}

}  // namespace

std::string variant_class(size_t report_index) {
  return fmt::format("v{}", report_index % kNumColours);
}

void draw_mark(SvgWriter& svg, BenchTest test, SvgPoint center) {
  constexpr double kSize = 5;
  const std::vector<SvgPoint> corners = mark_corners(test);
  if (corners.empty()) return svg.circle("mark", center, kSize);
  std::vector<SvgPoint> points;
  for (const SvgPoint& corner : corners) {
    points.push_back({center.x + kSize * corner.x, center.y + kSize * corner.y});
  }
  svg.area("mark", points, {});
}

std::string draw_bench(const MachineReport& machine, const std::vector<BenchReport>& reports) {
  const std::vector<GrowthPanel> panels = growth_panels(reports);
  const std::vector<SpeculationPanel> speculation = speculation_panels(reports);
  const size_t num_panels = panels.size() + speculation.size();
  const Legend legend = make_legend(reports, 66);
  const double roofline_top = legend.bottom() + 50;
  const double small_top = roofline_top + kRooflineHeight + kBenchGap;
  const double loading_height =
      std::min(kGrowthHeight, 10 + kLoadingRow * static_cast<double>(reports.size()));
  const SvgBox loading = small_panel(num_panels, small_top, loading_height);
  const double growth_rows = static_cast<double>((num_panels + 1) / 2);
  const double height = std::max(small_top + growth_rows * (kGrowthHeight + kBenchGap),
                                 loading.y + loading.height + kMargin);
  SvgWriter svg(kBenchPageWidth, height,
                fmt::format("<title>paceline bench, {}</title>\n{}", xml_escape(machine.processor),
                            svg_style(kBenchLight, kBenchDark)));
  svg.rectangle("page", {0, 0, kBenchPageWidth, height});
  constexpr std::string_view kTitle = "paceline bench";
  svg.text("title", {kBenchLeft, 38}, kTitle);
  svg.text("caption", {kBenchLeft + text_width(kTitle, 22) * 1.12 + 12, 38},
           fmt::format("{}, {}", machine.processor, isa_name(machine.isa)));
  legend.draw(svg);
  const SvgBox roofline{kBenchLeft, roofline_top, kBenchPlotWidth, kRooflineHeight};
  svg.text("name", {kBenchLeft, roofline.y - 10}, "roofline");
  svg.text("note", {kBenchLeft + 70, roofline.y - 10},
           "speed under what the machine does at best, measured beside it");
  draw_roofline(svg, reports, roofline);
  for (size_t i = 0; i < panels.size(); ++i) {
    draw_growth(svg, reports, panels[i], small_panel(i, small_top, kGrowthHeight));
  }
  for (size_t i = 0; i < speculation.size(); ++i) {
    draw_speculation(svg, reports, speculation[i],
                     small_panel(panels.size() + i, small_top, kGrowthHeight));
  }
  draw_loading(svg, reports, loading);
  return svg.finish();
}

}  // namespace paceline
