// The common parts of a drawn trace's panels: time axis, frame, headings and legends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/svg_writer.h"

namespace paceline {

// Maps times to the x axis of every panel.
class TimeScale {
 public:
  TimeScale(double left, double width, int64_t duration_us)
      : left_(left), width_(width), duration_us_(duration_us) {}

  double x(int64_t time_us) const;
  double left() const { return left_; }
  double right() const { return left_ + width_; }
  int64_t duration_us() const { return duration_us_; }
  // Round times at a readable distance, the first 0.
  std::vector<int64_t> ticks_us() const;

 private:
  double left_;
  double width_;
  int64_t duration_us_;
};

struct LegendEntry {
  std::string_view css_class;
  std::string_view label;
};

// The background of a panel with a line at each tick.
void draw_frame(SvgWriter& svg, const SvgBox& box, const TimeScale& scale);

// The name of a panel and its meaning, above it, and its legend on the right.
struct PanelHeading {
  std::string_view name;
  std::string note;
  std::span<const LegendEntry> legend;
};
void draw_heading(SvgWriter& svg, const SvgBox& box, const PanelHeading& heading);

// Times in ms, centred at the ticks, with their baseline at `y`.
void draw_times(SvgWriter& svg, const TimeScale& scale, double y);

}  // namespace paceline
