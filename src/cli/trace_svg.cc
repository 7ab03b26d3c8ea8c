#include "cli/trace_svg.h"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "cli/progress.h"
#include "cli/svg_style.h"
#include "cli/svg_writer.h"
#include "cli/trace_areas.h"
#include "cli/trace_lanes.h"
#include "cli/trace_panel.h"

namespace paceline {
namespace {

constexpr std::string_view kTraceLight = R"(.figure { font-size: 22px; font-weight: 600; }
.reason, .step-number { fill: #5d6878; }
.step-number { text-anchor: middle; font-size: 9px; }
.reason { font-size: 10px; }
.label { text-anchor: middle; font-size: 10px; }
.panel-key { fill: #f6f7f9; stroke: #aeb6c2; }
.step { stroke: #e9ecf1; }
.wait { fill: #bcc4cf; }
.prefill { fill: #f2a541; }
.again { fill: url(#paceline-again); }
.again-ground { fill: #fbe0b8; }
.again-stripe { fill: #d9822b; }
.decode { fill: #3373cc; }
.accepted { fill: #8fb8ee; }
.rejected { fill: url(#paceline-rejected); }
.rejected-ground { fill: #e3ebf6; }
.rejected-stripe { fill: #8fa3bd; }
.cached { fill: #12a187; }
.held { fill: #7566cf; }
.unshared { fill: none; stroke: #1b2430; stroke-width: 1.5; stroke-dasharray: 4 3; }
.unshared-key { fill: none; stroke: #1b2430; stroke-dasharray: 3 2; }
.preempted { fill: #d6294a; }
.preemption { stroke: #d6294a; stroke-dasharray: 2 2; }
.cross { stroke: #d6294a; stroke-width: 2.5; stroke-linecap: round; }
.cross-halo { stroke: #ffffff; stroke-width: 5; stroke-linecap: round; }
.end { fill: #1b2430; }
.on-prefill { fill: #3d2600; }
.on-again { fill: #3d2600; font-weight: 600; }
.on-cached { fill: #ffffff; }
)";

constexpr std::string_view kTraceDark = R"(.reason, .step-number { fill: #9aa5b4; }
.panel-key { fill: #181d25; stroke: #4a5462; }
.step { stroke: #212832; }
.wait { fill: #4c5665; }
.prefill { fill: #e59a38; }
.again-ground { fill: #5b4423; }
.again-stripe { fill: #e59a38; }
.decode { fill: #5794ec; }
.accepted { fill: #a9cbfa; }
.rejected-ground { fill: #263142; }
.rejected-stripe { fill: #6b7f9b; }
.cached { fill: #22b598; }
.held { fill: #8f81e8; }
.unshared, .unshared-key { stroke: #e6eaf0; }
.preempted { fill: #ff5a76; }
.preemption, .cross { stroke: #ff5a76; }
.cross-halo { stroke: #10141a; }
.end { fill: #e6eaf0; }
.on-prefill { fill: #2a1a00; }
.on-again { fill: #ffffff; }
.on-cached { fill: #06121f; }
)";

constexpr std::string_view kPatterns = R"svg(<defs>
<pattern id="paceline-again" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)">
<rect class="again-ground" width="6" height="6"/><rect class="again-stripe" width="2.5" height="6"/>
</pattern>
<pattern id="paceline-rejected" width="4" height="4" patternUnits="userSpaceOnUse"
 patternTransform="rotate(-45)">
<rect class="rejected-ground" width="4" height="4"/><rect class="rejected-stripe" width="1.5" height="4"/>
</pattern>
</defs>)svg";

// Style and patterns, as markup. The colours differ for all common kinds of colour blindness. No
// CSS variables: converters to other formats lack them.
std::string trace_style() { return svg_style(kTraceLight, kTraceDark) + std::string(kPatterns); }

constexpr double kTracePageWidth = 1280;
constexpr double kTraceLeft = 64;
constexpr double kTracePlotWidth = 1104;
constexpr double kLanesTop = 176;
constexpr double kRowsHeight = 80;
constexpr double kPoolHeight = 130;
constexpr double kTraceGap = 48;  // between panels, with a heading in it

constexpr LegendEntry kLaneLegend[] = {{"wait", "waiting"},
                                       {"cached", "from the prefix cache"},
                                       {"prefill", "prefill"},
                                       {"again", "computed again"},
                                       {"decode", "decode"},
                                       {"preempted", "preempted"},
                                       {"end", "end"},
                                       {"accepted", "accepted drafts"},
                                       {"rejected", "rejected drafts"}};
constexpr size_t kDraftEntries = 2;  // the last ones, of traces with drafts

// The positions of the panels, from top to bottom.
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
  std::vector<std::pair<std::string, std::string_view>> figures = {
      {grouped_digits(totals.requests), "requests"},
      {grouped_digits(totals.prompt_tokens), "prompt tokens"},
      {grouped_digits(totals.cached_tokens), "cached tokens"},
      {grouped_digits(totals.output_tokens), "tokens drawn"},
      {grouped_digits(totals.steps), "steps"},
      {fmt::format("{:.2f}", totals.seconds), "seconds"},
      {grouped_number(totals.tokens_per_second()), "tokens/s"},
      {grouped_digits(totals.preemptions), "preemptions"}};
  if (totals.drafted_tokens > 0) {
    const DraftCounts drafts = totals.drafts();
    figures.insert(figures.begin() + 4,
                   {{grouped_digits(drafts.drafted), "drafted"},
                    {grouped_digits(drafts.accepted), "accepted"},
                    {fmt::format("{:.2f}", drafts.tokens_per_step()), "tokens a step"}});
  }
  svg.text("title", {kTraceLeft, 44}, "The batch over time: " + shortened(totals.model, 60));
  double x = kTraceLeft;
  for (const auto& [figure, caption] : figures) {
    svg.text("figure", {x, 92}, figure);
    svg.text("caption", {x, 110}, caption);
    x += kTracePlotWidth / static_cast<double>(figures.size());
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
  const bool has_drafts = totals.drafted_tokens > 0;  // the longer legend needs the note's room
  const size_t num_hidden = has_drafts ? 0 : kDraftEntries;
  draw_heading(
      svg, layout.lanes,
      {.name = "Sequences",
       .note = has_drafts ? "by arrival" : "in order of arrival, with tokens computed and drawn",
       .legend = std::span(kLaneLegend).first(std::size(kLaneLegend) - num_hidden)});
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
