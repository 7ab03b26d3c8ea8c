#include "traffic/load_client/report.h"

#include <fmt/format.h>

#include <iterator>

#include "base/json_writer.h"

namespace paceline::traffic {
namespace {

constexpr double kP50 = 0.5, kP99 = 0.99;

void add_samples(std::string& out, std::string_view name, const Samples& samples) {
  if (samples.count() == 0) return;
  fmt::format_to(std::back_inserter(out), "  {:<28} {:>10.2f} {:>10.2f} {:>10.2f} {:>12}\n", name,
                 1e3 * samples.quantile(kP50), 1e3 * samples.quantile(kP99), 1e3 * samples.most(),
                 samples.count());
}

void add_tally(std::string& out, std::string_view name, const Tally& tally) {
  if (tally.sent == 0) return;
  fmt::format_to(std::back_inserter(out),
                 "{}: {} sent, {} completed with {} tokens, {} refused, {} with wrong tokens, {} "
                 "errors\n",
                 name, tally.sent, tally.completed, tally.tokens, tally.refused,
                 Tally::count(tally.faults), Tally::count(tally.errors));
  for (const auto* reasons : {&tally.faults, &tally.errors}) {
    for (const auto& [reason, count] : *reasons) {
      fmt::format_to(std::back_inserter(out), "  {} x {}\n", count, reason);
    }
  }
  fmt::format_to(std::back_inserter(out), "  {:<28} {:>10} {:>10} {:>10} {:>12}\n", "ms", "p50",
                 "p99", "most", "count");
  add_samples(out, "added latency of tokens", tally.added_latency);
  add_samples(out, "between tokens", tally.gap);
  add_samples(out, "time to first token", tally.first_token);
  add_samples(out, "whole answers", tally.whole);
  add_samples(out, "refusals", tally.refusal);
}

void write_samples(JsonWriter& writer, std::string_view name, const Samples& samples) {
  writer.key(name).begin_object().member("count", samples.count());
  writer.member("p50_ms", 1e3 * samples.quantile(kP50));
  writer.member("p99_ms", 1e3 * samples.quantile(kP99));
  writer.member("most_ms", 1e3 * samples.most()).end_object();
}

void write_tally(JsonWriter& writer, std::string_view name, const Tally& tally) {
  writer.key(name).begin_object();
  writer.member("sent", tally.sent).member("completed", tally.completed);
  writer.member("refused", tally.refused).member("tokens", tally.tokens);
  for (const auto& [key, reasons] :
       {std::pair("faults", &tally.faults), {"errors", &tally.errors}}) {
    writer.key(key).begin_object();
    for (const auto& [reason, count] : *reasons) writer.member(reason, count);
    writer.end_object();
  }
  write_samples(writer, "added_latency", tally.added_latency);
  write_samples(writer, "gap", tally.gap);
  write_samples(writer, "first_token", tally.first_token);
  write_samples(writer, "whole", tally.whole);
  write_samples(writer, "refusal", tally.refusal);
  writer.end_object();
}

}  // namespace

std::string report_table(const LoadPlan& plan, const Load& load) {
  std::string out;
  add_tally(out, "streams", load.streams());
  add_tally(out, "requests", load.requests());
  if (plan.idle > 0) {
    fmt::format_to(std::back_inserter(out), "idle connections: {}, {} of them lost\n", plan.idle,
                   load.num_lost_idle());
    add_samples(out, "connect to first answer", load.idle_times());
  }
  fmt::format_to(std::back_inserter(out), "connections: {}\n", load.num_connections());
  add_samples(out, "connect", load.connect_times());
  fmt::format_to(std::back_inserter(out), "{:.1f} s\n", load.seconds());
  return out;
}

std::string report_json(const LoadPlan& plan, const Load& load) {
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  write_tally(writer, "streams", load.streams());
  write_tally(writer, "requests", load.requests());
  writer.member("request_seconds", load.request_seconds());
  writer.key("idle").begin_object().member("count", plan.idle);
  writer.member("lost", load.num_lost_idle());
  write_samples(writer, "first_answer", load.idle_times());
  writer.end_object();
  writer.member("connections", load.num_connections());
  write_samples(writer, "connect", load.connect_times());
  writer.member("seconds", load.seconds()).end_object();
  return json;
}

bool is_flawless(const LoadPlan& plan, const Load& load) {
  const auto is_clean = [&](const Tally& tally, bool may_refuse) {
    return tally.faults.empty() && tally.errors.empty() && (may_refuse || tally.refused == 0);
  };
  return is_clean(load.streams(), false) && is_clean(load.requests(), plan.may_refuse) &&
         load.num_lost_idle() == 0;
}

}  // namespace paceline::traffic
