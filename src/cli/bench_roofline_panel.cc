#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/bench_panels.h"
#include "cli/bench_report.h"
#include "cli/figures.h"
#include "cli/plot_labels.h"
#include "cli/plot_scale.h"

namespace paceline {
namespace {

bool is_drawn(const BenchRow& row) { return row.tokens > 0 && row.read_bytes > 0; }

double intensity(const BenchRow& row) { return row.operations / row.read_bytes; }

// The rate of one instruction and the bandwidth, with one number of threads: medians of all
// samples.
struct Ceiling {
  std::string_view instruction;
  int threads = 0;
  double operations = 0;
  double read_bytes = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<Ceiling> ceilings_of(const BenchReports& reports) {
  std::map<std::pair<int, std::string_view>, std::vector<double>> operations;
  std::map<int, std::vector<double>> read_bytes;
  for (const BenchReport& report : reports) {
    const auto name = instruction_of(report.products);
    for (const BenchRow& row : report.rows) {
      if (!is_drawn(row)) continue;
      operations[{report.threads, name}].push_back(row.ceilings.operations);
      read_bytes[report.threads].push_back(row.ceilings.read_bytes);
    }
  }
  std::vector<Ceiling> ceilings;
  for (const auto& [key, rates] : operations) {
    ceilings.push_back({.instruction = key.second,
                        .threads = key.first,
                        .operations = median(rates),
                        .read_bytes = median(read_bytes[key.first])});
  }
  return ceilings;
}

class RooflinePanel {
 public:
  RooflinePanel(SvgWriter& svg, const BenchReports& reports, const SvgBox& box)
      : svg_(svg),
        reports_(reports),
        box_(box),
        ceilings_(ceilings_of(reports)),
        x_(intensities(), box.x, box.right()),
        y_(rates(), box.bottom(), box.y),
        labels_(svg, box) {}

  void draw() {
    svg_.rectangle("panel", box_);
    if (ceilings_.empty()) {
      svg_.text("note", {box_.x + 12, box_.y + 20}, "no speed was measured");
      return;
    }
    draw_axes();
    for (const Ceiling& ceiling : ceilings_) draw_ceiling(ceiling);
    for (const BenchReport& report : reports_) keep_points_clear(report);
    for (const Ceiling& ceiling : ceilings_) name_ceiling(ceiling);
    for (size_t i = 0; i < reports_.size(); ++i) draw_points(i);
  }

 private:
  // The values that the axes must span, with a margin around the points.
  std::vector<double> intensities() const {
    std::vector<double> values;
    for (const BenchReport& report : reports_) {
      for (const BenchRow& row : report.rows) {
        if (is_drawn(row)) values.push_back(0.7 * intensity(row));
      }
    }
    for (const Ceiling& c : ceilings_) values.push_back(2 * c.operations / c.read_bytes);
    return values;
  }
  std::vector<double> rates() const {
    std::vector<double> values;
    for (const BenchReport& report : reports_) {
      for (const BenchRow& row : report.rows) {
        if (is_drawn(row)) values.push_back(0.7 * row.operations);
      }
    }
    for (const Ceiling& ceiling : ceilings_) values.push_back(1.4 * ceiling.operations);
    return values;
  }

  void draw_axes() {
    for (const double tick : x_.ticks()) {
      svg_.line("grid", {x_.at(tick), box_.y}, {x_.at(tick), box_.bottom()});
      svg_.text("tick", {x_.at(tick), box_.bottom() + 16}, without_zeros(figure(tick)));
    }
    for (const double tick : y_.ticks()) {
      svg_.line("grid", {box_.x, y_.at(tick)}, {box_.right(), y_.at(tick)});
      svg_.text("axis", {box_.x - 8, y_.at(tick) + 4}, without_zeros(figure_of(tick, "OP/s")));
    }
    svg_.text("tick", {box_.x + box_.width / 2, box_.bottom() + 34}, "operations per byte read");
  }

  // Draws the bandwidth's slope up to the instruction's rate, then the level; keeps labels off it.
  void draw_ceiling(const Ceiling& ceiling) {
    constexpr double kStep = 4;
    const SvgPoint begin = foot_of(ceiling), knee = knee_of(ceiling);
    svg_.outline("ceiling", {begin, knee, {box_.right(), knee.y}});
    labels_.keep_clear({knee.x, knee.y - 1, box_.right() - knee.x, 2});
    const auto num_steps = static_cast<int>((knee.x - begin.x) / kStep);
    for (int i = 0; i < num_steps; ++i) {
      const double y = begin.y + (knee.y - begin.y) * i / num_steps;
      labels_.keep_clear({begin.x + kStep * i, y - kStep / 2, kStep, kStep});
    }
  }

  // The points where the bandwidth's slope enters the panel, and where it meets the rate.
  SvgPoint foot_of(const Ceiling& ceiling) const {
    const double begin = std::max(x_.low(), y_.low() / ceiling.read_bytes);
    return {x_.at(begin), y_.at(begin * ceiling.read_bytes)};
  }
  SvgPoint knee_of(const Ceiling& ceiling) const {
    return {x_.at(ceiling.operations / ceiling.read_bytes), y_.at(ceiling.operations)};
  }

  std::string threads_text(const Ceiling& ceiling) const {
    const bool differ = std::any_of(reports_.begin(), reports_.end(), [&](const BenchReport& r) {
      return r.threads != ceiling.threads;
    });
    return differ ? fmt::format(", {} thread{}", ceiling.threads, ceiling.threads == 1 ? "" : "s")
                  : "";
  }

  void name_ceiling(const Ceiling& ceiling) {
    const std::string threads = threads_text(ceiling);
    const SvgPoint knee = knee_of(ceiling);
    const std::string rate =
        fmt::format("{} {}{}", ceiling.instruction, figure_of(ceiling.operations, "OP/s"), threads);
    const bool is_named = labels_.place_along(rate, {box_.right(), knee.y}, knee);
    if (!is_named) labels_.place(rate, {(knee.x + box_.right()) / 2, knee.y});
    if (!named_.insert(ceiling.threads).second) return;
    labels_.place_along(
        fmt::format("read bandwidth {}{}", figure_of(ceiling.read_bytes, "B/s"), threads), knee,
        foot_of(ceiling));
  }

  SvgPoint point_of(const BenchRow& row) const {
    return {x_.at(intensity(row)), y_.at(row.operations)};
  }

  void keep_points_clear(const BenchReport& report) {
    constexpr double kMark = 5;
    for (const BenchRow& row : report.rows) {
      if (!is_drawn(row)) continue;
      const SvgPoint at = point_of(row);
      labels_.keep_clear({at.x - kMark, at.y - kMark, 2 * kMark, 2 * kMark});
    }
  }

  void draw_points(size_t index) {
    const BenchReport& report = reports_[index];
    for (const BenchRow& row : report.rows) {
      if (!is_drawn(row)) continue;
      svg_.open_group(variant_class(index));
      svg_.tooltip(fmt::format("{}, {}: {}, {} tok/s, {} of {}", report.name, report.weight_format,
                               bench_run_name(row.run), figure(row.tokens),
                               share_figure(row.fraction), limit_name(report, row)));
      draw_mark(svg_, row.run.test, point_of(row));
      svg_.close_group();
      labels_.place(bench_run_name(row.run), point_of(row));
    }
  }

  SvgWriter& svg_;
  const BenchReports& reports_;
  SvgBox box_;
  std::vector<Ceiling> ceilings_;
  LogScale x_;
  LogScale y_;
  PlotLabels labels_;
  std::set<int> named_;  // numbers of threads whose bandwidth has its label
};

}  // namespace

void draw_roofline(SvgWriter& svg, const BenchReports& reports, const SvgBox& box) {
  RooflinePanel(svg, reports, box).draw();
}

}  // namespace paceline
