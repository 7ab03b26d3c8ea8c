#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/bench_panels.h"
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "cli/plot_labels.h"
#include "cli/plot_scale.h"
#include "cli/trace_totals.h"

namespace paceline {
namespace {

int64_t value_of(const BenchRun& run, BenchAxis axis) {
  return axis == BenchAxis::prompt_tokens ? run.prompt_tokens : run.sequences;
}

int64_t other_value_of(const BenchRun& run, BenchAxis axis) {
  return axis == BenchAxis::prompt_tokens ? run.sequences : run.prompt_tokens;
}

// One variant with one value of the other size.
struct Series {
  size_t report_index = 0;
  int64_t other = 0;
  std::map<int64_t, double> seconds = {};  // by the value of the axis
};

std::vector<Series> series_of(const BenchReports& reports, const GrowthPanel& panel) {
  std::vector<Series> all;
  for (size_t i = 0; i < reports.size(); ++i) {
    for (const BenchRow& row : reports[i].rows) {
      if (row.run.test != panel.test || row.tokens <= 0) continue;
      const int64_t other = other_value_of(row.run, panel.axis);
      auto found = std::find_if(all.begin(), all.end(), [&](const Series& series) {
        return series.report_index == i && series.other == other;
      });
      if (found == all.end()) found = all.insert(all.end(), {.report_index = i, .other = other});
      found->seconds[value_of(row.run, panel.axis)] = row.unit_seconds;
    }
  }
  std::erase_if(all, [](const Series& series) { return series.seconds.size() < 2; });
  return all;
}

std::string_view unit_of(BenchTest test) {
  switch (test) {
    case BenchTest::decode:
      return "time of a token";
    case BenchTest::batch:
      return "time of a step";
    case BenchTest::classify:
      return "time of a call";
    default:
      return "time of the prompt";
  }
}

std::string axis_name(const GrowthPanel& panel) {
  if (panel.axis == BenchAxis::prompt_tokens) {
    return panel.test == BenchTest::decode ? "tokens of context" : "tokens of the prompt";
  }
  return panel.test == BenchTest::classify ? "prompts of a call" : "sequences";
}

// Draws ticks at the measured values, except where labels would touch.
void draw_values(SvgWriter& svg, const std::set<int64_t>& values, const LogScale& x,
                 const SvgBox& box) {
  double free_from = box.x - 20;
  for (const int64_t value : values) {
    const std::string text = grouped_digits(value);
    const double center = x.at(static_cast<double>(value));
    const double half = text_width(text, 11) / 2;
    svg.line("grid", {center, box.y}, {center, box.bottom()});
    if (center - half < free_from) continue;
    svg.text("tick", {center, box.bottom() + 16}, text);
    free_from = center + half + 6;
  }
}

struct Scales {
  LogScale x;
  LogScale y;
};

std::set<int64_t> others_of(const std::vector<Series>& all) {
  std::set<int64_t> others;
  for (const Series& series : all) others.insert(series.other);
  return others;
}

Scales draw_axes(SvgWriter& svg, const std::vector<Series>& all, const SvgBox& box) {
  constexpr double kMargin = 16;
  constexpr double kLabelRoom = 84;  // right of the curves, where they need names
  std::set<int64_t> values;
  std::vector<double> seconds;
  for (const Series& series : all) {
    for (const auto& [value, time] : series.seconds) {
      values.insert(value);
      seconds.push_back(time);
    }
  }
  const double right = box.right() - (others_of(all).size() > 1 ? kLabelRoom : kMargin);
  const Scales scales{.x = LogScale({values.begin(), values.end()}, box.x + kMargin, right),
                      .y = LogScale(seconds, box.bottom(), box.y)};
  draw_values(svg, values, scales.x, box);
  for (const double tick : scales.y.ticks()) {
    const double y = scales.y.at(tick);
    svg.line("grid", {box.x, y}, {box.right(), y});
    svg.text("axis", {box.x - 8, y + 4}, without_zeros(duration_figure(tick)));
  }
  return scales;
}

std::vector<SvgPoint> points_of(const Series& series, const Scales& scales) {
  std::vector<SvgPoint> points;
  for (const auto& [value, time] : series.seconds) {
    points.push_back({scales.x.at(static_cast<double>(value)), scales.y.at(time)});
  }
  return points;
}

// Names each value of the other size once, at the end of the first curve that has it.
void name_others(const std::vector<Series>& all, BenchAxis axis, const Scales& scales,
                 PlotLabels& labels) {
  std::set<int64_t> named;
  for (const Series& series : all) {
    if (!named.insert(series.other).second) continue;
    const std::string_view noun = axis == BenchAxis::sequences ? "token" : "sequence";
    labels.place(
        fmt::format("{} {}{}", grouped_digits(series.other), noun, series.other == 1 ? "" : "s"),
        points_of(series, scales).back());
  }
}

}  // namespace

std::vector<GrowthPanel> growth_panels(const BenchReports& reports) {
  std::vector<GrowthPanel> panels;
  for (const BenchReport& report : reports) {
    for (const BenchRow& row : report.rows) {
      if (row.run.test == BenchTest::speculate) continue;  // its panels show speed-ups
      for (const BenchAxis axis : {BenchAxis::prompt_tokens, BenchAxis::sequences}) {
        const GrowthPanel panel{.test = row.run.test, .axis = axis};
        const bool is_known = std::find(panels.begin(), panels.end(), panel) != panels.end();
        if (!is_known && !series_of(reports, panel).empty()) panels.push_back(panel);
      }
    }
  }
  return panels;
}

void draw_growth(SvgWriter& svg, const BenchReports& reports, const GrowthPanel& panel,
                 const SvgBox& box) {
  const std::vector<Series> all = series_of(reports, panel);
  const std::string name(bench_test_name(panel.test));
  svg.text("name", {box.x, box.y - 10}, name);
  svg.text("note", {box.x + text_width(name, 12) * 1.12 + 8, box.y - 10}, unit_of(panel.test));
  svg.rectangle("panel", box);
  const Scales scales = draw_axes(svg, all, box);
  svg.text("tick", {box.x + box.width / 2, box.bottom() + 34}, axis_name(panel));
  PlotLabels labels(svg, box);
  for (const Series& series : all) {
    const std::vector<SvgPoint> points = points_of(series, scales);
    svg.open_group(variant_class(series.report_index));
    svg.outline("curve", points);
    for (const SvgPoint& point : points) draw_mark(svg, panel.test, point);
    svg.close_group();
    for (const SvgPoint& point : points) labels.keep_clear({point.x - 6, point.y - 6, 12, 12});
  }
  const std::set<int64_t> others = others_of(all);
  if (others.size() > 1) name_others(all, panel.axis, scales, labels);
}

void draw_loading(SvgWriter& svg, const BenchReports& reports, const SvgBox& box) {
  constexpr double kRow = 22;
  constexpr double kLabelRoom = 84;
  double most_seconds = 0, most_bytes = 0;
  for (const BenchReport& report : reports) {
    most_seconds = std::max(most_seconds, report.load_seconds);
    most_bytes = std::max(most_bytes, static_cast<double>(report.resident_bytes));
  }
  svg.text("name", {box.x, box.y - 10}, "loading");
  svg.text("note", {box.x + 70, box.y - 10}, "time (left) and resident memory (right)");
  svg.rectangle("panel", box);
  const double half = box.width / 2;
  const auto bar = [&](SvgPoint at, double amount, double most, const std::string& text) {
    const double width = std::max(most > 0 ? (half - kLabelRoom) * amount / most : 0, 1.0);
    svg.rectangle("bar", {at.x, at.y + 5, width, kRow - 10}, 2);
    svg.text("label", {at.x + width + 6, at.y + kRow / 2 + 4}, text);
  };
  for (size_t i = 0; i < reports.size(); ++i) {
    const double y = box.y + 4 + kRow * static_cast<double>(i);
    const double seconds = reports[i].load_seconds;
    const auto bytes = static_cast<double>(std::max<int64_t>(reports[i].resident_bytes, 0));
    svg.open_group(variant_class(i));
    svg.tooltip(fmt::format("{}, {}", reports[i].name, reports[i].weight_format));
    bar({box.x + 8, y}, seconds, most_seconds, duration_figure(seconds));
    bar({box.x + half + 8, y}, bytes, most_bytes, bytes_text(bytes));
    svg.close_group();
  }
}

}  // namespace paceline
