#include "cli/trace_areas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/trace_totals.h"

namespace paceline {
namespace {

// An amount over time, one value per drawn interval.
using Amounts = std::vector<double>;

// The mean amount over each pixel of the axis.
Amounts columns_of(const std::vector<Interval>& times, const Amounts& amounts,
                   const TimeScale& scale) {
  const auto num_columns = static_cast<size_t>(scale.right() - scale.left());
  Amounts columns(num_columns, 0);
  for (size_t i = 0; i < times.size(); ++i) {
    const double begin = scale.x(times[i].begin_us) - scale.left();
    const double end = scale.x(times[i].end_us) - scale.left();
    for (auto column = static_cast<size_t>(begin);
         column < num_columns && static_cast<double>(column) < end; ++column) {
      const auto left = static_cast<double>(column);
      columns[column] += amounts[i] * (std::min(end, left + 1) - std::max(begin, left));
    }
  }
  return columns;
}

// The outline of the columns from left to right; `top` is the value at the upper edge of the box.
std::vector<SvgPoint> edge_of(const Amounts& columns, const SvgBox& box, double top) {
  std::vector<SvgPoint> edge;
  double last_y = box.bottom();
  for (size_t column = 0; column < columns.size(); ++column) {
    const double y = box.bottom() - box.height * std::clamp(columns[column] / top, 0.0, 1.0);
    if (!edge.empty() && std::abs(y - last_y) < 0.005) continue;
    const double x = box.x + static_cast<double>(column);
    if (!edge.empty()) edge.push_back({x, last_y});
    edge.push_back({x, y});
    last_y = y;
  }
  edge.push_back({box.right(), last_y});
  return edge;
}

struct Layer {
  std::string_view css_class;
  Amounts amounts;
};

// Draws the layers stacked, the first at the bottom.
void draw_stacked(SvgWriter& svg, const std::vector<Interval>& times,
                  const std::vector<Layer>& layers, const SvgBox& box, double top,
                  const TimeScale& scale) {
  Amounts below(times.size(), 0);
  for (const Layer& layer : layers) {
    std::vector<SvgPoint> back = edge_of(columns_of(times, below, scale), box, top);
    std::reverse(back.begin(), back.end());
    for (size_t i = 0; i < times.size(); ++i) below[i] += layer.amounts[i];
    svg.area(layer.css_class, edge_of(columns_of(times, below, scale), box, top), back);
  }
}

// Draws the y axis: a line and a number at 0, at half of `mark` and at `mark`.
void draw_amounts(SvgWriter& svg, const SvgBox& box, double top, int64_t mark) {
  std::vector<int64_t> amounts = {0};
  if (mark >= 4 && mark % 2 == 0) amounts.push_back(mark / 2);
  if (mark > 0) amounts.push_back(mark);
  for (int64_t amount : amounts) {
    const double y = box.bottom() - box.height * static_cast<double>(amount) / top;
    svg.line(amount == mark ? "edge" : "grid", {box.x, y}, {box.right(), y});
    svg.text("axis", {box.x - 8, y + 3.5}, grouped_digits(amount));
  }
}

// The time of each step; gaps too short to be seen belong to the step before.
std::vector<Interval> times_of_rows(const Timeline& timeline, const TimeScale& scale) {
  constexpr double kVisible = 1;
  std::vector<Interval> times;
  for (const StepTime& step : timeline.steps) {
    const bool is_gap_hidden =
        !times.empty() && scale.x(step.time.begin_us) - scale.x(times.back().end_us) < kVisible;
    if (is_gap_hidden) times.back().end_us = step.time.begin_us;
    times.push_back(step.time);
  }
  return times;
}

// Intervals from one step's begin to the next: the pool doesn't change in between.
std::vector<Interval> times_of_pool(const Timeline& timeline) {
  std::vector<Interval> times;
  for (const StepTime& step : timeline.steps) {
    if (!times.empty()) times.back().end_us = step.time.begin_us;
    times.push_back({step.time.begin_us, timeline.duration_us});
  }
  return times;
}

// The blocks held in the first group; shared blocks count for each sequence.
Amounts unshared_blocks(const Trace& trace) {
  Amounts blocks;
  for (const StepRecord& step : trace.steps) {
    double sum = 0;
    for (const StepRecord::Blocks& one : step.blocks) sum += static_cast<double>(one.count);
    blocks.push_back(sum);
  }
  return blocks;
}

double largest(const Amounts& amounts) {
  return amounts.empty() ? 0 : *std::max_element(amounts.begin(), amounts.end());
}

// Preemptions show where the blocks run out; too many lines would hide that.
void draw_preemptions(SvgWriter& svg, const Timeline& timeline, const SvgBox& box,
                      const TimeScale& scale) {
  constexpr size_t kMost = 60;
  std::vector<int64_t> times_us;
  for (const Lane& lane : timeline.lanes) {
    times_us.insert(times_us.end(), lane.preemptions_us.begin(), lane.preemptions_us.end());
  }
  if (times_us.size() > kMost) return;
  for (int64_t time_us : times_us) {
    svg.line("preemption", {scale.x(time_us), box.y}, {scale.x(time_us), box.bottom()});
  }
}

// The blocks at the full height of a pool's panel: the pool's, or fewer if its use would be too
// small to see.
int64_t shown_blocks(const TraceGroup& group, int64_t most_used) {
  constexpr int64_t kHardlyUsed = 4;
  const bool is_hardly_used = most_used > 0 && most_used * kHardlyUsed < group.blocks;
  return is_hardly_used ? most_used : group.blocks;
}

std::string pool_note(const TraceGroup& group, int64_t block_size, int64_t num_shown) {
  std::string note =
      fmt::format("a pool of {} blocks of {} tokens", grouped_digits(group.blocks), block_size);
  if (group.window > 0) {
    note += fmt::format(", for layers with a window of {}", grouped_digits(group.window));
  }
  if (num_shown < group.blocks) {
    note += fmt::format(", at most {} in use", grouped_digits(num_shown));
  }
  return note;
}

}  // namespace

void draw_rows(SvgWriter& svg, const Trace& trace, const Timeline& timeline, const SvgBox& box,
               const TimeScale& scale) {
  static constexpr LegendEntry kLegend[] = {{"decode", "decode"},
                                            {"prefill", "prefill"},
                                            {"accepted", "accepted drafts"},
                                            {"rejected", "rejected drafts"}};
  Layer decode{.css_class = "decode", .amounts = {}};
  Layer accepted{.css_class = "accepted", .amounts = {}};
  Layer rejected{.css_class = "rejected", .amounts = {}};
  Layer prefill{.css_class = "prefill", .amounts = {}};
  int64_t most = 0;
  bool has_drafts = false;
  for (const StepTime& step : timeline.steps) {
    const int64_t drafted = step.accepted_rows + step.rejected_rows;
    has_drafts = has_drafts || drafted > 0;
    decode.amounts.push_back(static_cast<double>(step.decode_rows - drafted));
    accepted.amounts.push_back(static_cast<double>(step.accepted_rows));
    rejected.amounts.push_back(static_cast<double>(step.rejected_rows));
    prefill.amounts.push_back(static_cast<double>(step.prefill_rows));
    most = std::max(most, step.decode_rows + step.prefill_rows);
  }
  draw_heading(svg, box,
               {.name = "Rows of the batch",
                .note = fmt::format("at most {} a step, {} allowed", grouped_digits(most),
                                    grouped_digits(trace.start.max_batched_tokens)),
                .legend = std::span(kLegend).first(has_drafts ? 4 : 2)});
  draw_frame(svg, box, scale);
  const auto top = static_cast<double>(std::max<int64_t>(most, 1));
  const std::vector<Layer> layers = has_drafts
                                        ? std::vector<Layer>{decode, accepted, rejected, prefill}
                                        : std::vector<Layer>{decode, prefill};
  draw_stacked(svg, times_of_rows(timeline, scale), layers, box, top, scale);
  draw_amounts(svg, box, top, most);
}

void draw_pool(SvgWriter& svg, const Trace& trace, const Timeline& timeline, size_t group_index,
               const SvgBox& box, const TimeScale& scale) {
  static constexpr LegendEntry kLegend[] = {{"held", "held by sequences"},
                                            {"cached", "prefix cache only"},
                                            {"panel-key", "free"},
                                            {"unshared-key", "held if nothing were shared"}};
  const TraceGroup& group = trace.start.groups[group_index];
  const std::vector<Interval> times = times_of_pool(timeline);
  Layer held{.css_class = "held", .amounts = {}};
  Layer cached{.css_class = "cached", .amounts = {}};
  int64_t most_used = 0;
  for (const StepRecord& step : trace.steps) {
    const int64_t num_held = group.blocks - step.free_blocks[group_index];
    const int64_t num_cached = step.cached_blocks[group_index];
    held.amounts.push_back(static_cast<double>(num_held));
    cached.amounts.push_back(static_cast<double>(num_cached));
    most_used = std::max(most_used, num_held + num_cached);
  }
  const int64_t num_shown = shown_blocks(group, most_used);
  const Amounts unshared = group_index == 0 ? unshared_blocks(trace) : Amounts();
  const bool is_shared = unshared != held.amounts && largest(unshared) > largest(held.amounts);
  const double top = std::max(static_cast<double>(num_shown), is_shared ? largest(unshared) : 0.0);

  const std::span<const LegendEntry> legend(kLegend, is_shared ? 4 : 3);
  draw_heading(svg, box,
               {.name = "Cache blocks",
                .note = pool_note(group, trace.start.block_size, num_shown),
                .legend = legend});
  draw_frame(svg, box, scale);
  draw_stacked(svg, times, {held, cached}, box, top, scale);
  draw_amounts(svg, box, top, num_shown);
  draw_preemptions(svg, timeline, box, scale);
  if (is_shared) svg.outline("unshared", edge_of(columns_of(times, unshared, scale), box, top));
}

}  // namespace paceline
