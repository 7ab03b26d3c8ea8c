// The areas of a drawn trace: the rows of the batch, and who holds the blocks of a pool, over time.
#pragma once

#include "cli/svg_writer.h"
#include "cli/trace_file.h"
#include "cli/trace_panel.h"
#include "cli/trace_timeline.h"

namespace paceline {

void draw_rows(SvgWriter& svg, const Trace& trace, const Timeline& timeline, const SvgBox& box,
               const TimeScale& scale);

// The pool of the group of that index.
void draw_pool(SvgWriter& svg, const Trace& trace, const Timeline& timeline, size_t group_index,
               const SvgBox& box, const TimeScale& scale);

}  // namespace paceline
