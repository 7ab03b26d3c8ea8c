// The lanes of a drawn trace: one a sequence, in order of arrival.
#pragma once

#include "cli/svg_writer.h"
#include "cli/trace_panel.h"
#include "cli/trace_timeline.h"

namespace paceline {

// As high as so many lanes are drawn; bounded, however many there are.
double lanes_height(size_t num_lanes);

// Within `box`, whose height is lanes_height's.
void draw_lanes(SvgWriter& svg, const Timeline& timeline, const SvgBox& box,
                const TimeScale& scale);

}  // namespace paceline
