#include "cli/trace_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/plot_scale.h"
#include "cli/trace_totals.h"

namespace paceline {
namespace {

std::string time_label(int64_t time_us) {
  if (time_us % 1000 == 0) return grouped_digits(time_us / 1000) + " ms";
  return fmt::format("{} ms", static_cast<double>(time_us) / 1e3);
}

}  // namespace

double TimeScale::x(int64_t time_us) const {
  const auto duration = static_cast<double>(std::max<int64_t>(duration_us_, 1));
  return left_ + width_ * std::clamp(static_cast<double>(time_us) / duration, 0.0, 1.0);
}

std::vector<int64_t> TimeScale::ticks_us() const {
  constexpr int kMostTicks = 12;
  const double round = tick_distance(static_cast<double>(duration_us_), kMostTicks);
  const int64_t distance = std::max<int64_t>(std::llround(round), 1);
  std::vector<int64_t> ticks;
  for (int64_t tick = 0; tick <= duration_us_; tick += distance) ticks.push_back(tick);
  return ticks;
}

void draw_frame(SvgWriter& svg, const SvgBox& box, const TimeScale& scale) {
  svg.rectangle("panel", box);
  for (int64_t tick : scale.ticks_us()) {
    const double x = scale.x(tick);
    svg.line("grid", {x, box.y}, {x, box.bottom()});
  }
}

void draw_heading(SvgWriter& svg, const SvgBox& box, const PanelHeading& heading) {
  constexpr double kFontSize = 12;
  constexpr double kBold = 1.12;
  constexpr double kSwatch = 10;
  const double y = box.y - 10;
  svg.text("name", {box.x, y}, heading.name);
  svg.text("note", {box.x + text_width(heading.name, kFontSize) * kBold + 8, y}, heading.note);
  double x = box.right();
  for (auto entry = heading.legend.rbegin(); entry != heading.legend.rend(); ++entry) {
    x -= text_width(entry->label, kFontSize);
    svg.text("note", {x, y}, entry->label);
    x -= kSwatch + 6;
    svg.rectangle(entry->css_class, {x, y - kSwatch + 1, kSwatch, kSwatch}, 2);
    x -= 18;
  }
}

void draw_times(SvgWriter& svg, const TimeScale& scale, double y) {
  for (int64_t tick : scale.ticks_us()) svg.text("tick", {scale.x(tick), y}, time_label(tick));
}

}  // namespace paceline
