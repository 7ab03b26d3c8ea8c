#include "cli/train_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/plot_labels.h"
#include "cli/plot_scale.h"
#include "cli/svg_style.h"
#include "cli/svg_writer.h"

namespace paceline {
namespace {

constexpr double kLossPlotWidth = 760;
constexpr double kLossPlotHeight = 420;
constexpr SvgBox kLossBox = {.x = 64, .y = 56, .width = 660, .height = 300};

constexpr std::string_view kLossLight = R"(
.grid{stroke:#ddd}.axis{stroke:#888}.tick{font-size:12px;fill:#666}.end{text-anchor:end}
.middle{text-anchor:middle}.title{font-size:15px;fill:#222}.key{font-size:13px;fill:#444}
.train{fill:none;stroke:#3367d6;stroke-width:2}.valid{fill:none;stroke:#c5572c;stroke-width:2}
.dot{fill:#c5572c}.train-key{stroke:#3367d6;stroke-width:3}.valid-key{stroke:#c5572c;stroke-width:3})";
constexpr std::string_view kLossDark = R"(
.grid{stroke:#444}.axis{stroke:#888}.tick{fill:#aaa}.title{fill:#eee}.key{fill:#ccc})";

// Linear axes around the values.
struct LossAxes {
  double last_step = 1;
  double low = 0;
  double high = 1;

  SvgPoint at(double step, double loss) const {
    return {kLossBox.x + kLossBox.width * step / last_step,
            kLossBox.bottom() - kLossBox.height * (loss - low) / (high - low)};
  }
};

LossAxes axes_of(std::span<const TrainingPoint> points) {
  std::vector<double> losses;
  LossAxes axes;
  for (const TrainingPoint& point : points) {
    if (point.loss) losses.push_back(*point.loss);
    if (point.validation_loss) losses.push_back(*point.validation_loss);
    axes.last_step = std::max(axes.last_step, static_cast<double>(point.step));
  }
  if (losses.empty()) return axes;
  const auto [least, most] = std::minmax_element(losses.begin(), losses.end());
  const double distance = tick_distance(std::max(*most - *least, 1e-3), 6);
  axes.low = std::floor(*least / distance) * distance;
  axes.high = std::max(std::ceil(*most / distance) * distance, axes.low + distance);
  return axes;
}

void draw_axes(SvgWriter& svg, const LossAxes& axes) {
  const double distance = tick_distance(axes.high - axes.low, 7);
  const auto count = static_cast<int>(std::round((axes.high - axes.low) / distance));
  for (int i = 0; i <= count; ++i) {
    const double loss = axes.low + i * distance;
    const double y = axes.at(0, loss).y;
    svg.line("grid", {kLossBox.x, y}, {kLossBox.right(), y});
    svg.text("tick end", {kLossBox.x - 8, y + 4}, without_zeros(fmt::format("{:.3f}", loss)));
  }
  const double step_distance = std::max(1.0, tick_distance(axes.last_step, 8));
  for (double step = 0; step <= axes.last_step; step += step_distance) {
    svg.text("tick middle", {axes.at(step, axes.low).x, kLossBox.bottom() + 20},
             fmt::format("{:.0f}", step));
  }
  svg.line("axis", {kLossBox.x, kLossBox.bottom()}, {kLossBox.right(), kLossBox.bottom()});
  svg.text("tick middle", {kLossBox.x + kLossBox.width / 2, kLossBox.bottom() + 42}, "steps");
}

}  // namespace

std::string loss_plot(std::span<const TrainingPoint> points, std::string_view title) {
  const LossAxes axes = axes_of(points);
  SvgWriter svg(
      kLossPlotWidth, kLossPlotHeight,
      fmt::format("<title>{}</title>{}", xml_escape(title), svg_style(kLossLight, kLossDark)));
  svg.text("title", {kLossBox.x, 30}, title);
  draw_axes(svg, axes);
  std::vector<SvgPoint> train, valid;
  for (const TrainingPoint& point : points) {
    const auto step = static_cast<double>(point.step);
    if (point.loss) train.push_back(axes.at(step, *point.loss));
    if (point.validation_loss) valid.push_back(axes.at(step, *point.validation_loss));
  }
  svg.outline("train", train);
  svg.outline("valid", valid);
  for (const SvgPoint& at : valid) svg.circle("dot", at, 3);
  const double y = kLossBox.y - 8;
  svg.line("train-key", {kLossBox.right() - 210, y - 4}, {kLossBox.right() - 190, y - 4});
  svg.text("key", {kLossBox.right() - 184, y}, "training");
  if (!valid.empty()) {
    svg.line("valid-key", {kLossBox.right() - 110, y - 4}, {kLossBox.right() - 90, y - 4});
    svg.text("key", {kLossBox.right() - 84, y}, "validation");
  }
  return svg.finish();
}

}  // namespace paceline
