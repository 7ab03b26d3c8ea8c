#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/bench_panels.h"
#include "cli/bench_speculation_report.h"
#include "cli/figures.h"
#include "cli/plot_labels.h"
#include "cli/plot_scale.h"

namespace paceline {
namespace {

// The speed-ups of one length of drafts, by acceptance.
using Curve = std::map<double, double>;

bool is_drawn(const BenchRow& row, const SpeculationPanel& panel) {
  return row.run.drafts.drafter == BenchDrafter::replay && !row.drafted.empty() &&
         row.run.sequences == panel.sequences;
}

std::vector<std::pair<std::string, Curve>> curves_of(const BenchReport& report,
                                                     const SpeculationPanel& panel) {
  std::vector<std::pair<std::string, Curve>> curves;
  for (const BenchRow& row : report.rows) {
    if (!is_drawn(row, panel)) continue;
    curves.resize(std::max(curves.size(), row.drafted.size()));
    for (size_t i = 0; i < row.drafted.size(); ++i) {
      curves[i].first = draft_name(row.drafted[i].limits);
      curves[i].second[row.run.drafts.acceptance] = row.drafted[i].speedup;
    }
  }
  return curves;
}

double highest(const std::vector<std::pair<std::string, Curve>>& curves) {
  double most = 1;
  for (const auto& [name, curve] : curves) {
    for (const auto& [acceptance, speedup] : curve) most = std::max(most, speedup);
  }
  return most;
}

// Linear axes: acceptance from 0 to 1, speed-up from 0 on.
class Axes {
 public:
  Axes(const SvgBox& box, double most) : box_(box), top_(1.08 * most) {}

  SvgPoint at(double acceptance, double speedup) const {
    constexpr double kLabelRoom = 64;  // right of the curves
    return {box_.x + acceptance * (box_.width - kLabelRoom),
            box_.bottom() - box_.height * speedup / top_};
  }

  void draw(SvgWriter& svg) const {
    for (int i = 0; i <= 5; ++i) {
      const double x = at(0.2 * i, 0).x;
      svg.line("grid", {x, box_.y}, {x, box_.bottom()});
      svg.text("tick", {x, box_.bottom() + 16}, fmt::format("{:.1f}", 0.2 * i));
    }
    const double distance = tick_distance(top_, 6);
    for (double tick = 0; tick <= top_; tick += distance) {
      const double y = at(0, tick).y;
      svg.line("grid", {box_.x, y}, {box_.right(), y});
      svg.text("axis", {box_.x - 8, y + 4}, without_zeros(fmt::format("{:.1f}", tick)));
    }
    svg.outline("ceiling", {{box_.x, at(0, 1).y}, {box_.right(), at(0, 1).y}});
    svg.text("tick", {box_.x + box_.width / 2, box_.bottom() + 34}, "acceptance");
  }

 private:
  SvgBox box_;
  double top_;
};

}  // namespace

std::vector<SpeculationPanel> speculation_panels(const BenchReports& reports) {
  std::vector<SpeculationPanel> panels;
  for (size_t i = 0; i < reports.size(); ++i) {
    for (const BenchRow& row : reports[i].rows) {
      const SpeculationPanel panel{.report_index = i, .sequences = row.run.sequences};
      const bool is_known = std::find(panels.begin(), panels.end(), panel) != panels.end();
      if (!is_known && is_drawn(row, panel)) panels.push_back(panel);
    }
  }
  return panels;
}

void draw_speculation(SvgWriter& svg, const BenchReports& reports, const SpeculationPanel& panel,
                      const SvgBox& box) {
  const BenchReport& report = reports[panel.report_index];
  const auto curves = curves_of(report, panel);
  const std::string name(bench_test_name(BenchTest::speculate));
  svg.text("name", {box.x, box.y - 10}, name);
  svg.text("note", {box.x + text_width(name, 12) * 1.12 + 8, box.y - 10},
           fmt::format("speed-up with drafts, {} sequence{}, {}, {}", panel.sequences,
                       panel.sequences == 1 ? "" : "s", report.name, report.weight_format));
  svg.rectangle("panel", box);
  const Axes axes(box, highest(curves));
  axes.draw(svg);
  PlotLabels labels(svg, box);
  for (size_t i = 0; i < curves.size(); ++i) {
    std::vector<SvgPoint> points;
    svg.open_group(variant_class(i));
    for (const auto& [acceptance, speedup] : curves[i].second)
      points.push_back(axes.at(acceptance, speedup));
    svg.outline("curve", points);
    for (const SvgPoint& point : points) draw_mark(svg, BenchTest::speculate, point);
    svg.close_group();
    for (const SvgPoint& point : points) labels.keep_clear({point.x - 5, point.y - 5, 10, 10});
  }
  for (const auto& [length, curve] : curves)
    labels.place(length, axes.at(curve.rbegin()->first, curve.rbegin()->second));
}

}  // namespace paceline
