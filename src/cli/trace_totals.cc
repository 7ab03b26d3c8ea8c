#include "cli/trace_totals.h"
#include "cli/figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "cli/progress.h"

namespace paceline {
namespace {

void count_reason(std::vector<std::pair<std::string, int64_t>>& reasons, const std::string& name) {
  const auto found = std::find_if(reasons.begin(), reasons.end(),
                                  [&](const auto& reason) { return reason.first == name; });
  if (found == reasons.end()) {
    reasons.emplace_back(name, 1);
  } else {
    ++found->second;
  }
}

void add_lanes(const Timeline& timeline, TraceTotals& totals) {
  std::vector<int64_t> first_tokens_us;
  for (const Lane& lane : timeline.lanes) {
    if (lane.end_us) count_reason(totals.finished, lane.finish_reason);
    if (lane.first_token_us) first_tokens_us.push_back(*lane.first_token_us - lane.arrival_us);
    totals.prompt_tokens += lane.prompt_tokens;
    totals.cached_tokens += lane.cached_tokens;
    totals.output_tokens += lane.output_tokens;
    totals.drafted_tokens += lane.drafted_tokens;
    totals.accepted_tokens += lane.accepted_tokens;
    totals.preemptions += static_cast<int64_t>(lane.preemptions_us.size());
    for (const LaneSpan& span : lane.spans) {
      totals.computed_tokens += span.tokens;
      if (span.kind == SpanKind::recompute) totals.recomputed_tokens += span.tokens;
    }
  }
  if (first_tokens_us.empty()) return;
  const auto middle =
      first_tokens_us.begin() + static_cast<std::ptrdiff_t>((first_tokens_us.size() - 1) / 2);
  std::nth_element(first_tokens_us.begin(), middle, first_tokens_us.end());
  totals.median_first_token_ms = static_cast<double>(*middle) / 1e3;
}

void add_steps(const Trace& trace, TraceTotals& totals) {
  totals.max_held.assign(trace.start.groups.size(), 0);
  int64_t forward_us = 0;
  int64_t overhead_us = 0;
  for (const StepRecord& step : trace.steps) {
    forward_us += step.forward_us;
    overhead_us += step.total_us - step.forward_us;
    totals.max_plan_us = std::max(totals.max_plan_us, step.plan_us);
    totals.max_running = std::max(totals.max_running, static_cast<int64_t>(step.slices.size()));
    for (size_t i = 0; i < totals.max_held.size(); ++i) {
      const int64_t held = trace.start.groups[i].blocks - step.free_blocks[i];
      totals.max_held[i] = std::max(totals.max_held[i], held);
    }
  }
  totals.forward_seconds = static_cast<double>(forward_us) / 1e6;
  if (trace.steps.empty()) return;
  totals.mean_overhead_us =
      static_cast<double>(overhead_us) / static_cast<double>(trace.steps.size());
}

std::string counted(int64_t count, std::string_view unit) {
  return fmt::format("{} {}", grouped_digits(count), plural_of(unit, count));
}

}  // namespace

double TraceTotals::tokens_per_second() const {
  return seconds > 0 ? static_cast<double>(output_tokens) / seconds : 0;
}

TraceTotals add_up(const Trace& trace, const Timeline& timeline) {
  TraceTotals totals;
  totals.model = trace.start.model;
  totals.requests = static_cast<int64_t>(trace.requests.size());
  totals.steps = static_cast<int64_t>(trace.steps.size());
  totals.seconds = static_cast<double>(timeline.duration_us) / 1e6;
  add_lanes(timeline, totals);
  add_steps(trace, totals);
  return totals;
}

std::string totals_json(const TraceTotals& totals) {
  return object_json([&](JsonWriter& writer) {
    writer.member("model", totals.model).member("requests", totals.requests);
    writer.key("finished").begin_object();
    for (const auto& [reason, count] : totals.finished) writer.member(reason, count);
    writer.end_object().member("steps", totals.steps);
    writer.member("seconds", totals.seconds).member("forward_seconds", totals.forward_seconds);
    writer.member("prompt_tokens", totals.prompt_tokens);
    writer.member("cached_tokens", totals.cached_tokens);
    writer.member("computed_tokens", totals.computed_tokens);
    writer.member("recomputed_tokens", totals.recomputed_tokens);
    writer.member("output_tokens", totals.output_tokens);
    writer.member("drafted_tokens", totals.drafted_tokens);
    writer.member("accepted_tokens", totals.accepted_tokens);
    writer.member("tokens_per_step", totals.drafts().tokens_per_step());
    writer.member("tokens_per_second", totals.tokens_per_second());
    writer.member("preemptions", totals.preemptions).member("max_running", totals.max_running);
    writer.member("max_blocks_held", totals.max_held)
        .member("median_first_token_ms", totals.median_first_token_ms);
    writer.member("mean_overhead_us", totals.mean_overhead_us);
    writer.member("max_plan_us", totals.max_plan_us);
  });
}

std::string totals_text(const TraceTotals& totals) {
  std::string text = fmt::format(
      "{} · {} out of {} in · {} · {:.2f} s · {} tokens/s · {} · {} from the prefix cache",
      counted(totals.requests, "request"), counted(totals.output_tokens, "token"),
      grouped_digits(totals.prompt_tokens), counted(totals.steps, "step"), totals.seconds,
      grouped_number(totals.tokens_per_second()), counted(totals.preemptions, "preemption"),
      counted(totals.cached_tokens, "token"));
  if (totals.drafted_tokens > 0) text += " · " + draft_figures(totals.drafts());
  return text;
}

}  // namespace paceline
