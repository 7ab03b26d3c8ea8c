#include "cli/trace_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/plot_scale.h"
#include "cli/trace_totals.h"

namespace paceline {
namespace {

constexpr double kTallestLane = 24;
constexpr double kMostHeight = 900;
constexpr double kLabelHeight = 11;  // of a lane that has room for text
constexpr double kLaneFontSize = 10;
constexpr double kNarrow = 3;  // pixels; narrower slices are drawn together

double lane_height(size_t num_lanes) {
  const double height = kMostHeight / static_cast<double>(std::max<size_t>(num_lanes, 1));
  // Whole pixels make the lanes look equal.
  return height >= kTallestLane ? kTallestLane : (height >= 2 ? std::floor(height) : height);
}

std::string_view class_of(SpanKind kind) {
  static constexpr std::string_view kNames[] = {"prefill", "again", "decode"};
  return kNames[static_cast<size_t>(kind)];
}

std::string milliseconds(int64_t time_us) {
  return fmt::format("{:.1f} ms", static_cast<double>(time_us) / 1e3);
}

std::string tooltip_of(const Lane& lane) {
  std::string text =
      fmt::format("sequence {}: {} prompt tokens, {} of them from the prefix cache, {} drawn",
                  lane.id, grouped_digits(lane.prompt_tokens), grouped_digits(lane.cached_tokens),
                  grouped_digits(lane.output_tokens));
  if (lane.drafted_tokens > 0) {
    text += "\n" + draft_figures({.drafted = lane.drafted_tokens,
                                  .accepted = lane.accepted_tokens,
                                  .output = lane.output_tokens});
  }
  text += "\narrived at " + milliseconds(lane.arrival_us);
  if (lane.first_token_us) {
    text += ", first token after " + milliseconds(*lane.first_token_us - lane.arrival_us);
  }
  if (!lane.preemptions_us.empty()) {
    text += fmt::format(", preemptions: {}", lane.preemptions_us.size());
  }
  if (lane.end_us) {
    text += fmt::format(", {} after {}", lane.finish_reason,
                        milliseconds(*lane.end_us - lane.arrival_us));
  }
  return text;
}

// Draws one lane, with the details that its height allows.
class LaneDrawing {
 public:
  LaneDrawing(SvgWriter& svg, const Lane& lane, const SvgBox& row, const TimeScale& scale)
      : svg_(svg), lane_(lane), row_(row), scale_(scale) {
    double bar = row.height;
    if (row.height >= 3) bar -= std::max(1.0, std::round(row.height * 0.28));
    bar_ = {row.x, row.y + std::floor((row.height - bar) / 2), row.width, bar};
  }

  void draw() {
    svg_.open_group("lane");
    svg_.tooltip(tooltip_of(lane_));
    draw_presence();
    for (size_t i = 0; i < lane_.spans.size();) i = draw_spans_from(i);
    for (const CacheHit& hit : lane_.cache_hits) draw_cache_hit(hit);
    for (int64_t at_us : lane_.preemptions_us) draw_preemption(scale_.x(at_us));
    if (lane_.end_us) draw_end(scale_.x(*lane_.end_us));
    svg_.close_group();
  }

 private:
  bool has_text() const { return row_.height >= kLabelHeight; }

  SvgPoint label_at(double x) const { return {x, bar_.middle() + kLaneFontSize * 0.35}; }

  // Draws a thin line along the lane: visible where the sequence waits.
  void draw_presence() {
    const double begin = scale_.x(lane_.arrival_us);
    const double end = scale_.x(lane_.end_us.value_or(scale_.duration_us()));
    const double height = std::min(row_.height >= 8 ? 2.0 : 1.0, bar_.height / 2);
    svg_.rectangle("wait", {begin, bar_.middle() - height / 2, end - begin, height});
  }

  // Draws the span with adjacent narrow ones of its kind; returns the index behind them.
  size_t draw_spans_from(size_t first) {
    const LaneSpan& span = lane_.spans[first];
    const double begin = scale_.x(span.time.begin_us);
    double end = scale_.x(span.time.end_us);
    LaneSpan drawn = span;
    size_t next = first + 1;
    for (; next < lane_.spans.size(); ++next) {
      const LaneSpan& other = lane_.spans[next];
      const double other_end = scale_.x(other.time.end_us);
      const bool is_adjacent = other.last_step == lane_.spans[next - 1].last_step + 1;
      const bool is_narrow = other_end - end < kNarrow;
      if (other.kind != span.kind || !is_adjacent || !is_narrow) break;
      end = other_end;
      drawn.tokens += other.tokens;
      drawn.drafted += other.drafted;
      drawn.accepted += other.accepted;
    }
    // A gap keeps neighbouring slices apart.
    const double gap = end - begin > kNarrow ? 0.75 : 0;
    draw_bar({begin, bar_.y, std::max(end - begin - gap, 0.5), bar_.height}, drawn);
    return next;
  }

  void draw_bar(const SvgBox& box, const LaneSpan& span) {
    const SpanKind kind = span.kind;
    svg_.rectangle(class_of(kind), box, has_text() && box.width > 6 ? 2 : 0);
    draw_drafts(box, span);
    // Decoded tokens are counted at the lane's end, with the token that the prefill drew.
    if (kind == SpanKind::decode || !has_text()) return;
    const std::string label = grouped_digits(span.tokens);
    if (text_width(label, kLaneFontSize) + 4 > box.width) return;
    svg_.text(kind == SpanKind::prefill ? "label on-prefill" : "label on-again",
              label_at(box.x + box.width / 2), label);
  }

  // The upper part of a bar shows the share of drafted rows: accepted ones below rejected ones.
  void draw_drafts(const SvgBox& box, const LaneSpan& span) {
    if (span.drafted == 0) return;
    const auto height_of = [&](int64_t rows) {
      return box.height * static_cast<double>(rows) / static_cast<double>(span.tokens);
    };
    const double rejected = height_of(span.drafted - span.accepted);
    const double accepted = height_of(span.accepted);
    if (rejected > 0) svg_.rectangle("rejected", {box.x, box.y, box.width, rejected});
    if (accepted > 0) svg_.rectangle("accepted", {box.x, box.y + rejected, box.width, accepted});
  }

  // Cached tokens take no time: they are shown before the first slice, if there is room.
  void draw_cache_hit(const CacheHit& hit) {
    constexpr double kMark = 3;
    const double x = scale_.x(hit.at_us);
    double room = x - scale_.left();
    for (const LaneSpan& span : lane_.spans) {
      if (span.time.end_us <= hit.at_us) room = x - scale_.x(span.time.end_us);
    }
    const std::string label = grouped_digits(hit.tokens);
    const double width = text_width(label, kLaneFontSize) + 6;
    if (!has_text() || room < width) {
      const double mark = std::min(kMark, std::max(bar_.height, 1.0));
      svg_.rectangle("cached", {room < mark ? x : x - mark, bar_.y, mark, bar_.height});
      return;
    }
    svg_.rectangle("cached", {x - width - 0.75, bar_.y, width, bar_.height}, 2);
    svg_.text("label on-cached", label_at(x - width / 2 - 0.75), label);
  }

  void draw_preemption(double x) {
    if (row_.height < 8) {
      svg_.rectangle("preempted", {x - 1, row_.y, 2, row_.height});
      return;
    }
    const double reach = std::min(bar_.height / 2, 5.0);
    const double y = bar_.middle();
    for (std::string_view css_class : {"cross-halo", "cross"}) {
      svg_.line(css_class, {x - reach, y - reach}, {x + reach, y + reach});
      svg_.line(css_class, {x - reach, y + reach}, {x + reach, y - reach});
    }
  }

  void draw_end(double x) {
    if (row_.height < 5) {
      svg_.rectangle("end", {x - 0.5, bar_.y, 1, bar_.height});
      return;
    }
    const double radius = std::min(3.5, bar_.height / 2);
    svg_.circle("end", {x + radius + 1, bar_.middle()}, radius);
    if (!has_text()) return;
    svg_.text("reason", label_at(x + 2 * radius + 5),
              fmt::format("{}, {}", lane_.finish_reason, grouped_digits(lane_.output_tokens)));
  }

  SvgWriter& svg_;
  const Lane& lane_;
  SvgBox row_;
  SvgBox bar_;  // the drawn part of the row
  const TimeScale& scale_;
};

// Draws a line at the begin and end of each step, if they are far enough apart, and its number if
// there is room. Returns whether there was a number.
bool draw_steps(SvgWriter& svg, const Timeline& timeline, const SvgBox& box,
                const TimeScale& scale) {
  constexpr double kLeast = 5;
  constexpr double kNumberSize = 9;
  const int64_t last = timeline.steps.empty() ? 0 : timeline.steps.back().step;
  const double number_width = text_width(grouped_digits(last), kNumberSize) + 4;
  bool has_number = false;
  for (const StepTime& step : timeline.steps) {
    const double begin = scale.x(step.time.begin_us);
    const double end = scale.x(step.time.end_us);
    if (end - begin < kLeast) continue;
    for (double x : {begin, end}) svg.line("step", {x, box.y}, {x, box.bottom()});
    if (number_width > end - begin) continue;
    svg.text("step-number", {(begin + end) / 2, box.bottom() + 12}, grouped_digits(step.step));
    has_number = true;
  }
  if (has_number) svg.text("axis", {box.x - 8, box.bottom() + 12}, "step");
  return has_number;
}

}  // namespace

double lanes_height(size_t num_lanes) {
  return std::ceil(lane_height(num_lanes) * static_cast<double>(std::max<size_t>(num_lanes, 1)));
}

void draw_lanes(SvgWriter& svg, const Timeline& timeline, const SvgBox& box,
                const TimeScale& scale) {
  draw_frame(svg, box, scale);
  if (!draw_steps(svg, timeline, box, scale)) draw_times(svg, scale, box.bottom() + 15);
  const double height = lane_height(timeline.lanes.size());
  // Skips numbers where they would crowd.
  const auto every =
      height >= kLabelHeight ? 1 : static_cast<size_t>(std::ceil(2 * kLabelHeight / height));
  for (size_t i = 0; i < timeline.lanes.size(); ++i) {
    const Lane& lane = timeline.lanes[i];
    const SvgBox row{box.x, box.y + static_cast<double>(i) * height, box.width, height};
    if (i % every == 0) {
      svg.text("axis", {box.x - 8, row.middle() + 3.5}, fmt::format("{}", lane.id));
    }
    LaneDrawing(svg, lane, row, scale).draw();
  }
}

}  // namespace paceline
