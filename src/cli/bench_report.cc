#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "cli/bench_measure.h"
#include "cli/figures.h"
#include "cli/model_opening.h"

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

// "k 4", "adaptive".
std::string draft_name(const SpeculationLimits& limits) {
  return limits.adapts ? "adaptive" : fmt::format("k {}", limits.num_tokens);
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

// The speed-ups of all speculate rows by length of drafts, and what became of the drafts; empty
// without such rows.
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

// The members of a speculate row.
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

std::string_view operations_unit(ProductKind kind) {
  return kind == ProductKind::int8 ? "OP/s" : "FLOP/s";
}

// The name of the row's limit: "vdpbf16ps", "read bandwidth".
std::string_view limit_name(const BenchReport& report, const BenchRow& row) {
  if (row.limit == BenchLimit::bandwidth) return "read bandwidth";
  return instruction_of(report.products);
}

std::string roofline_text(const MachineReport& machine) {
  const Roofline& roofline = *machine.roofline;
  const auto line = [&](std::string_view what, std::string_view with, const std::string& rate) {
    return fmt::format("  {:<20}{:>14}{}{}\n", what, rate, with.empty() ? "" : "  ", with);
  };
  const auto products = [&](std::string_view what, ProductKind kind, double rate) {
    return line(what, product_instruction(machine.isa, kind),
                figure_of(rate, operations_unit(kind)));
  };
  std::string text = "\n" + line("read bandwidth", roofline.fastest_read,
                                 figure_of(roofline.read_bytes_per_s, "B/s"));
  text += products("bfloat16 products", ProductKind::bf16, roofline.bf16_flops_per_s);
  if (machine.vdpbf16ps_flops_per_s > 0) {
    text += line("", "vdpbf16ps, not in use", figure_of(machine.vdpbf16ps_flops_per_s, "FLOP/s"));
  }
  text += products("float32 products", ProductKind::f32, roofline.f32_flops_per_s);
  return text + products("8-bit products", ProductKind::int8, roofline.int8_ops_per_s);
}

// A test's own figure as a phrase.
std::string figure_phrase(std::string_view key, double value, const BenchRow& row) {
  if (key == "total_tokens_per_second") return figure(value) + " tok/s with prompts";
  if (key == "prompts_per_second") return figure(value) + " prompts/s";
  if (key == "alone_seconds") return fmt::format("alone {}", duration_figure(value));
  if (key == "unloaded_step_seconds") return fmt::format("a step {}", duration_figure(value));
  if (key == "longest_gap_seconds") return fmt::format("longest gap {}", duration_figure(value));
  if (key == "cold_seconds") {
    return fmt::format("cold {}, {} times", duration_figure(value),
                       figure(value / row.unit_seconds));
  }
  const std::string bytes = bytes_text(value);
  if (key == "bytes_per_waiting_sequence") return bytes + " a waiting sequence";
  if (key == "bytes_per_running_sequence") return bytes + " a running one";
  return bytes + " a token of the cache";
}

// The test's own figures, and the fraction of the vector instruction's rate where products use
// another one.
std::string row_notes(const BenchReport& report, const BenchRow& row) {
  std::vector<std::string> notes;
  for (const auto& [key, value] : row.figures) notes.push_back(figure_phrase(key, value, row));
  if (row.vector_fraction > 0 && row.limit == BenchLimit::operations) {
    notes.push_back(
        fmt::format("{} of {}", share_figure(row.vector_fraction),
                    product_instruction(*report.products.vector_isa, report.products.kind)));
  }
  return notes.empty() ? "" : fmt::format("  {}", fmt::join(notes, ", "));
}

std::string row_text(const BenchReport& report, const BenchRow& row) {
  const bool by_rate = row.limit == BenchLimit::operations;
  const std::string_view unit = by_rate ? operations_unit(report.products.kind) : "B/s";
  const double reached = by_rate ? row.operations : row.read_bytes;
  const double ceiling = by_rate ? row.ceilings.operations : row.ceilings.read_bytes;
  std::string speed =
      fmt::format("{:>9}{:>10}{:>14} {:>14} {:<15}{:>6}", figure(row.tokens),
                  duration_figure(row.unit_seconds), figure_of(reached, unit),
                  figure_of(ceiling, unit), limit_name(report, row), share_figure(row.fraction));
  if (row.tokens <= 0) speed = fmt::format("{:>9}{:>59}", "-", "");  // nothing was timed
  return fmt::format("  {:<24}{}{:>5}{}\n", bench_run_name(row.run), speed, row.runs,
                     row_notes(report, row));
}

std::string report_text(const BenchReport& report) {
  std::string text = fmt::format(
      "\n{}, {}, {}: {} in {}, {} resident, {} of weights\n", report.name, report.weight_format,
      report.device.empty()
          ? fmt::format("{} {}", report.threads, plural_of("thread", report.threads))
          : report.device,
      report.has_dummy_weights ? "dummy" : "loaded", duration_figure(report.load_seconds),
      bytes_text(std::max<int64_t>(report.resident_bytes, 0)), bytes_text(report.weight_bytes));
  for (const std::string& note : report.notes) text += fmt::format("  ({})\n", note);
  text += fmt::format("  {:<24}{:>9}{:>10}{:>14} {:>14} {:<15}{:>6}{:>5}\n", "test", "tok/s",
                      "time", "reached", "limit", "", "share", "runs");
  for (const BenchRow& row : report.rows) text += row_text(report, row);
  text += speculation_text(report);
  if (!report.choices.empty()) text += "  chosen by measurement:\n";
  for (const std::string& choice : report.choices) text += fmt::format("    {}\n", choice);
  return text;
}

void write_roofline(const MachineReport& machine, JsonWriter& writer) {
  if (!machine.roofline) return;
  const Roofline& roofline = *machine.roofline;
  writer.key("roofline").begin_object();
  writer.member("read_bytes_per_second", roofline.read_bytes_per_s);
  writer.member("fastest_read", roofline.fastest_read);
  writer.member("bf16_flops_per_second", roofline.bf16_flops_per_s);
  writer.member("f32_flops_per_second", roofline.f32_flops_per_s);
  writer.member("int8_operations_per_second", roofline.int8_ops_per_s);
  writer.member("bf16_instruction", product_instruction(machine.isa, ProductKind::bf16));
  writer.member("f32_instruction", product_instruction(machine.isa, ProductKind::f32));
  writer.member("int8_instruction", product_instruction(machine.isa, ProductKind::int8));
  if (machine.vdpbf16ps_flops_per_s > 0) {
    writer.member("vdpbf16ps_flops_per_second", machine.vdpbf16ps_flops_per_s);
  }
  writer.end_object();
}

void write_model(const BenchReport& report, JsonWriter& writer) {
  writer.member("model", report.name).member("dtype", report.dtype);
  writer.member("weight_format", report.weight_format).member("threads", report.threads);
  if (!report.device.empty()) writer.member("device", report.device);
}

void write_variant(const BenchReport& report, JsonWriter& writer) {
  writer.begin_object();
  write_model(report, writer);
  writer.member("dummy_weights", report.has_dummy_weights)
      .member("load_seconds", report.load_seconds);
  writer.member("resident_bytes", report.resident_bytes);
  writer.member("weight_bytes", report.weight_bytes);
  writer.member("decode_bytes", report.decode_bytes);
  writer.member("notes", report.notes).member("choices", report.choices).end_object();
}

void write_speed(const BenchReport& report, const BenchRow& row, JsonWriter& writer) {
  writer.member("tokens_per_second", row.tokens).member("seconds", row.unit_seconds);
  writer.member("flops_per_second", row.operations);
  writer.member("bytes_per_second", row.read_bytes);
  writer.member("kv_bytes_per_second", row.kv_bytes);
  writer.member("roofline_flops_per_second", row.ceilings.operations);
  writer.member("roofline_bytes_per_second", row.ceilings.read_bytes);
  writer.member("limit", limit_name(report, row)).member("fraction", row.fraction);
  if (row.vector_fraction <= 0) return;
  writer.member("vector_instruction",
                product_instruction(*report.products.vector_isa, report.products.kind));
  writer.member("vector_flops_per_second", row.ceilings.vector_operations);
  writer.member("vector_fraction", row.vector_fraction);
}

void write_row(const BenchReport& report, const BenchRow& row, JsonWriter& writer) {
  writer.begin_object();
  write_model(report, writer);
  const bool decodes = row.run.test == BenchTest::decode;
  writer.member("test", bench_test_name(row.run.test));
  writer.member(decodes ? "context" : "prompt_tokens", row.run.prompt_tokens);
  writer.member("output_tokens", row.run.output_tokens);
  writer.member("sequences", row.run.sequences);
  writer.member("tokens", decodes ? row.run.output_tokens : row.run.prompt_tokens);
  writer.member("runs", row.runs);
  if (row.tokens > 0) write_speed(report, row, writer);
  for (const auto& [key, value] : row.figures) writer.member(key, value);
  if (!row.drafted.empty()) write_speculation(row, writer);
  writer.end_object();
}

}  // namespace

std::string bench_text(const MachineReport& machine, const std::vector<BenchReport>& reports) {
  std::string text = fmt::format("{}, {}\n", machine.processor, isa_name(machine.isa));
  if (machine.roofline) text += roofline_text(machine);
  for (const BenchReport& report : reports) text += report_text(report);
  return text;
}

std::string bench_json(const MachineReport& machine, const std::vector<BenchReport>& reports) {
  const std::string json = object_json([&](JsonWriter& writer) {
    writer.member("machine", machine.processor);
    writer.member("instruction_set", isa_name(machine.isa)).member("threads", machine.threads);
    write_roofline(machine, writer);
    writer.key("variants").begin_array();
    for (const BenchReport& report : reports) write_variant(report, writer);
    writer.end_array().key("results").begin_array();
    for (const BenchReport& report : reports) {
      for (const BenchRow& row : report.rows) write_row(report, row, writer);
    }
    writer.end_array();
  });
  return json + "\n";
}

}  // namespace paceline
