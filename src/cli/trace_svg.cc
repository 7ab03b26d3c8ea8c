#include "cli/trace_svg.h"

#include <fmt/format.h>

#include <utility>

#include "cli/progress.h"
#include "cli/svg_writer.h"
#include "cli/trace_areas.h"
#include "cli/trace_lanes.h"
#include "cli/trace_panel.h"
#include "cli/trace_style.h"

namespace paceline {
namespace {

constexpr double kTracePageWidth = 1280;
constexpr double kTraceLeft = 64;
constexpr double kTracePlotWidth = 1104;
constexpr double kLanesTop = 176;
constexpr double kRowsHeight = 80;
constexpr double kPoolHeight = 130;
constexpr double kTraceGap = 48;  // between panels, with a heading in it

constexpr LegendEntry kLaneLegend[] = {{"wait", "waiting"},    {"cached", "from the prefix cache"},
                                       {"prefill", "prefill"}, {"again", "computed again"},
                                       {"decode", "decode"},   {"preempted", "preempted"},
                                       {"end", "end"}};

// Where the panels lie, from top to bottom.
struct Layout {
  SvgBox lanes;
  SvgBox rows;
  std::vector<SvgBox> pools;
  double height = 0;
};

Layout lay_out(const Trace& trace) {
  Layout layout;
  layout.lanes = {kTraceLeft, kLanesTop, kTracePlotWidth, lanes_height(trace.requests.size())};
  layout.rows = {kTraceLeft, layout.lanes.bottom() + kTraceGap, kTracePlotWidth, kRowsHeight};
  double bottom = layout.rows.bottom();
  for (size_t i = 0; i < trace.start.groups.size(); ++i) {
    layout.pools.push_back({kTraceLeft, bottom + kTraceGap, kTracePlotWidth, kPoolHeight});
    bottom = layout.pools.back().bottom();
  }
  layout.height = bottom + 40;
  return layout;
}

std::string shortened(std::string_view text, size_t most) {
  return text.size() <= most ? std::string(text)
                             : "..." + std::string(text.substr(text.size() - most));
}

void draw_totals(SvgWriter& svg, const TraceTotals& totals) {
  const std::pair<std::string, std::string_view> figures[] = {
      {grouped_digits(totals.requests), "requests"},
      {grouped_digits(totals.prompt_tokens), "prompt tokens"},
      {grouped_digits(totals.cached_tokens), "cached tokens"},
      {grouped_digits(totals.output_tokens), "tokens drawn"},
      {grouped_digits(totals.steps), "steps"},
      {fmt::format("{:.2f}", totals.seconds), "seconds"},
      {grouped_number(totals.tokens_per_second()), "tokens/s"},
      {grouped_digits(totals.preemptions), "preemptions"}};
  svg.text("title", {kTraceLeft, 44}, "The batch over time: " + shortened(totals.model, 60));
  double x = kTraceLeft;
  for (const auto& [figure, caption] : figures) {
    svg.text("figure", {x, 92}, figure);
    svg.text("caption", {x, 110}, caption);
    x += kTracePlotWidth / static_cast<double>(std::size(figures));
  }
}

}  // namespace

std::string draw_trace(const Trace& trace, const Timeline& timeline, const TraceTotals& totals) {
  const Layout layout = lay_out(trace);
  const TimeScale scale(kTraceLeft, kTracePlotWidth, timeline.duration_us);
  SvgWriter svg(
      kTracePageWidth, layout.height,
      fmt::format("<title>{}</title>\n{}", xml_escape(totals_text(totals)), trace_style()));
  svg.rectangle("page", {0, 0, kTracePageWidth, layout.height});
  draw_totals(svg, totals);
  draw_heading(svg, layout.lanes,
               {.name = "Sequences",
                .note = "in order of arrival, with tokens computed and drawn",
                .legend = kLaneLegend});
  draw_lanes(svg, timeline, layout.lanes, scale);
  draw_rows(svg, trace, timeline, layout.rows, scale);
  for (size_t i = 0; i < layout.pools.size(); ++i) {
    draw_pool(svg, trace, timeline, i, layout.pools[i], scale);
  }
  draw_times(svg, scale, layout.height - 18);
  if (trace.steps.empty()) {
    svg.text("note", {kTraceLeft + 12, layout.lanes.y + 18}, "no step ran");
  }
  return svg.finish();
}

}  // namespace paceline
