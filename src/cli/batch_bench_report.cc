// The report of `paceline bench --batch`.
#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/batch_bench.h"

namespace paceline {

std::string batch_table(const BatchBench& bench) {
  std::string table = fmt::format("{:<24} {:>14} {:>8} {:>14} {:>8}\n", "sequences", "decode tok/s",
                                  "of one", "all tok/s", "of one");
  const BatchRate& one = bench.generate.front();
  for (const BatchRate& rate : bench.generate) {
    table +=
        fmt::format("{:<24} {:>14.1f} {:>7.2f}x {:>14.1f} {:>7.2f}x\n", rate.num_sequences,
                    rate.decode_tokens_per_s, rate.decode_tokens_per_s / one.decode_tokens_per_s,
                    rate.total_tokens_per_s, rate.total_tokens_per_s / one.total_tokens_per_s);
  }
  table += fmt::format("\n{:<24} {:>14}\n", "classify, prompts a call", "prompts/s");
  for (const ClassifyRate& rate : bench.classify) {
    table += fmt::format("{:<24} {:>14.1f}\n", rate.num_prompts, rate.prompts_per_s);
  }
  table += fmt::format(
      "\nfirst token of a {}-token prompt: {:.1f} ms, {:.1f} ms when all but its end is cached "
      "({:.1f}x sooner)\n",
      bench.first_token_prompt, 1e3 * bench.first_token_cold_s, 1e3 * bench.first_token_warm_s,
      bench.first_token_cold_s / bench.first_token_warm_s);
  if (bench.beside) {
    const PrefillBeside& beside = *bench.beside;
    table += fmt::format(
        "a stream beside a {}-token prefill: longest gap {:.1f} ms, {:.2f} times an unloaded step "
        "({:.1f} ms);\nthe prefill takes {:.2f} s instead of {:.2f} s\n",
        beside.prompt_tokens, 1e3 * beside.longest_gap_s,
        beside.longest_gap_s / beside.unloaded_step_s, 1e3 * beside.unloaded_step_s,
        beside.beside_s, beside.alone_s);
  }
  table += fmt::format(
      "memory: {} bytes per waiting sequence, {} per running one and {} per token in the cache\n",
      bench.bytes_per_waiting, bench.bytes_per_running, bench.kv_bytes_per_token);
  return table;
}

void write_batch_members(const BatchBench& bench, JsonWriter& writer) {
  writer.key("generate").begin_array();
  for (const BatchRate& rate : bench.generate) {
    writer.begin_object().member("sequences", rate.num_sequences);
    writer.member("decode_tokens_per_second", rate.decode_tokens_per_s);
    writer.member("total_tokens_per_second", rate.total_tokens_per_s).end_object();
  }
  writer.end_array().key("classify").begin_array();
  for (const ClassifyRate& rate : bench.classify) {
    writer.begin_object().member("prompts", rate.num_prompts);
    writer.member("prompts_per_second", rate.prompts_per_s).end_object();
  }
  writer.end_array().member("first_token_prompt_tokens", bench.first_token_prompt);
  writer.member("first_token_cold_seconds", bench.first_token_cold_s);
  writer.member("first_token_warm_seconds", bench.first_token_warm_s);
  if (bench.beside) {
    const PrefillBeside& beside = *bench.beside;
    writer.key("prefill_beside_a_stream").begin_object();
    writer.member("prompt_tokens", beside.prompt_tokens);
    writer.member("unloaded_step_seconds", beside.unloaded_step_s);
    writer.member("longest_gap_seconds", beside.longest_gap_s);
    writer.member("alone_seconds", beside.alone_s).member("beside_seconds", beside.beside_s);
    writer.end_object();
  }
  writer.member("bytes_per_waiting_sequence", bench.bytes_per_waiting);
  writer.member("bytes_per_running_sequence", bench.bytes_per_running);
  writer.member("kv_bytes_per_token", bench.kv_bytes_per_token);
}

}  // namespace paceline
