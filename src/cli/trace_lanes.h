// Draws the lanes of a trace: one per sequence, in order of arrival.
#pragma once

#include "cli/svg_writer.h"
#include "cli/trace_panel.h"
#include "cli/trace_timeline.h"

namespace paceline {

// The height of `num_lanes` drawn lanes, which is bounded.
double lanes_height(size_t num_lanes);

// The box's height is lanes_height().
void draw_lanes(SvgWriter& svg, const Timeline& timeline, const SvgBox& box,
                const TimeScale& scale);

}  // namespace paceline
