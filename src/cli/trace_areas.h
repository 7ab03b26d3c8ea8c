// Draws the areas of a trace: the rows of the batch, and the use of a pool's blocks, over time.
#pragma once

#include "cli/svg_writer.h"
#include "cli/trace_file.h"
#include "cli/trace_panel.h"
#include "cli/trace_timeline.h"

namespace paceline {

void draw_rows(SvgWriter& svg, const Trace& trace, const Timeline& timeline, const SvgBox& box,
               const TimeScale& scale);

// The pool of the group with that index.
void draw_pool(SvgWriter& svg, const Trace& trace, const Timeline& timeline, size_t group_index,
               const SvgBox& box, const TimeScale& scale);

}  // namespace paceline
