// PlotLabels writes labels beside points where there is room, and omits the others.
#pragma once

#include <string_view>
#include <vector>

#include "cli/svg_writer.h"

namespace paceline {

class PlotLabels {
 public:
  // Labels stay within `box`.
  PlotLabels(SvgWriter& svg, const SvgBox& box) : svg_(svg), box_(box) {}

  // Labels must not overlap `taken`.
  void keep_clear(const SvgBox& taken) { taken_.push_back(taken); }
  // Writes right of the point, left of it, above or below, wherever there is room first; false: not
  // at all.
  bool place(std::string_view text, SvgPoint at);
  // Writes above a line that is level or rises to the right, as near to `from` as there is room.
  bool place_along(std::string_view text, SvgPoint from, SvgPoint to);

 private:
  bool write_if_free(std::string_view text, const SvgBox& box);
  bool is_free(const SvgBox& wanted) const;

  SvgWriter& svg_;
  SvgBox box_;
  std::vector<SvgBox> taken_;
};

}  // namespace paceline
