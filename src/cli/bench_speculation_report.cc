#include "cli/bench_speculation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/figures.h"
#include "cli/trace_totals.h"

namespace paceline {
namespace {

double share(int64_t count, int64_t of) {
  return of > 0 ? static_cast<double>(count) / static_cast<double>(of) : 0;
}

// Of the drafts, by position, how often the token there was drawn. The last position is the last
// that any draft had drawn.
std::vector<double> accepted_shares(const SpeculationCounters& counters) {
  std::vector<double> shares;
  for (const int64_t count : counters.accepted_at) {
    if (count == 0) break;
    shares.push_back(share(count, counters.drafts));
  }
  return shares;
}

std::string heading(const BenchRow& row) {
  std::string text = fmt::format("  {:<40}{:>9}", "speed-up with drafts", "plain");
  for (const SpeculationRow& drafted : row.drafted)
    text += fmt::format("{:>9}", draft_name(drafted.limits));
  return text + "\n";
}

std::string fate(const SpeculationRow& drafted) {
  const SpeculationCounters& counters = drafted.counters;
  std::string text = fmt::format(
      "    {}: {} tok/s, {} tokens a step, {} of {} drafted tokens accepted ({})",
      draft_name(drafted.limits), figure(drafted.tokens), figure(drafted.tokens_per_step),
      grouped_digits(counters.accepted_tokens), grouped_digits(counters.drafted_tokens),
      share_figure(share(counters.accepted_tokens, counters.drafted_tokens)));
  std::vector<std::string> positions;
  for (const double part : accepted_shares(counters)) positions.push_back(share_figure(part));
  if (!positions.empty()) text += fmt::format(", by position {}", fmt::join(positions, " "));
  if (counters.failures > 0) text += fmt::format("; {} failures", counters.failures);
  return text + "\n";
}

}  // namespace

std::string draft_name(const SpeculationLimits& limits) {
  return limits.adapts ? "adaptive" : fmt::format("k {}", limits.num_tokens);
}

std::string speculation_text(const BenchReport& report) {
  std::string text;
  for (const BenchRow& row : report.rows) {
    if (row.drafted.empty()) continue;
    if (text.empty()) text = heading(row);
    text += fmt::format("  {:<40}{:>9}", bench_run_name(row.run), figure(row.tokens));
    for (const SpeculationRow& drafted : row.drafted)
      text += fmt::format("{:>9.2f}", drafted.speedup);
    text += "\n";
    if (row.run.drafts.drafter == BenchDrafter::replay) continue;
    for (const SpeculationRow& drafted : row.drafted) text += fate(drafted);
  }
  return text;
}

void write_speculation(const BenchRow& row, JsonWriter& writer) {
  const BenchDrafts& drafts = row.run.drafts;
  writer.member("drafter", drafter_name(drafts)).member("prompts", prompts_name(drafts));
  if (drafts.drafter == BenchDrafter::replay) {
    writer.member("acceptance", drafts.acceptance);
  } else {
    writer.member("temperature", drafts.temperature);
  }
  writer.key("drafts").begin_array();
  for (const SpeculationRow& drafted : row.drafted) {
    const SpeculationCounters& counters = drafted.counters;
    writer.begin_object().member("draft_length", drafted.limits.num_tokens);
    writer.member("adaptive", drafted.limits.adapts);
    writer.member("tokens_per_second", drafted.tokens).member("speedup", drafted.speedup);
    writer.member("tokens_per_step", drafted.tokens_per_step);
    writer.member("drafts", counters.drafts).member("drafted_tokens", counters.drafted_tokens);
    writer.member("accepted_tokens", counters.accepted_tokens);
    writer.member("failures", counters.failures).key("accepted_shares").begin_array();
    for (const double part : accepted_shares(counters)) writer.number(part);
    writer.end_array().end_object();
  }
  writer.end_array();
}

}  // namespace paceline
