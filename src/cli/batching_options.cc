// Options of the step loop: how many requests run together, and how they share.
#include <fmt/format.h>

#include "cli/option_groups.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using enum CommandId;

// Commands that have many requests.
constexpr CommandSet kMany = set_of({generate, classify, decide, score, embed, batch, serve});

// Commands whose streams must go on beside a long prompt.
constexpr CommandSet kLimitsSlowdown = set_of({bench, serve});
constexpr std::string_view kStepSlowdownHelp =
    "Let prompts make a step of running answers at most X times slower; 0: no limit.";

void apply_step_slowdown(Settings& settings, const OptionValue& value) {
  const double factor = std::get<double>(value);
  if (factor > 0 && factor < 1) {
    throw Error(ErrorCode::invalid,
                fmt::format("--max-step-slowdown: found {}, expected 0, or 1 and more: a prompt "
                            "makes no step faster",
                            factor));
  }
  settings.load.max_step_slowdown = std::get<double>(value);
  settings.max_step_slowdown = std::get<double>(value);
}

void apply_max_num_seqs(Settings& settings, const OptionValue& value) {
  settings.load.max_num_seqs = as_integer(value);
  settings.max_num_seqs = as_integer(value);
}

constexpr OptionDef kBatchingOptions[] = {
    {.name = "max-num-batched-tokens",
     .aliases = "-b",
     .placeholder = "N",
     .limits = {1, 65536},
     .default_text = "512",
     .help = "Tokens computed in one step; longer prompts take several steps.",
     .commands = kOnModel,
     .to = kTo<&Settings::load, &LoadOptions::max_num_batched_tokens>},
    {.name = "max-num-seqs",
     .aliases = "--parallel -np",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 65536},
     .default_text = "256",
     .help = "Sequences computed at once.",
     .commands = set_of({batch, serve}),
     .apply = apply_max_num_seqs},
    {.default_text = "256 with --jsonl, else one for each prompt",
     .help = "Sequences computed at once.",
     .commands = set_of({generate, chat, classify, decide, score, embed})},
    {.default_text = "1",
     .help = "Sequences that the cache has room for.",
     .commands = set_of({perplexity, inspect})},
    {.name = "prefill-chunk",
     .placeholder = "N",
     .limits = {1, 65536},
     .default_text = "--max-num-batched-tokens",
     .help = "Most tokens of one prompt to compute in one step.",
     .to = kTo<&Settings::load, &LoadOptions::max_chunk>},
    {.name = "max-run-steps",
     .placeholder = "N",
     .limits = {1, 65536},
     .default_text = "64",
     .help = "Steps that a GPU decodes without the CPU, if no request comes or goes; 1: none.",
     .needs = "device=cuda",
     .to = kTo<&Settings::load, &LoadOptions::max_run_steps>},
    {.name = "max-tokens-per-sequence",
     .placeholder = "N",
     .limits = {1, kMaxTokens},
     .default_text = "all that the cache holds",
     .help = "Most cached tokens of one sequence, prompt and output together.",
     .to = kTo<&Settings::load, &LoadOptions::max_tokens_per_sequence>},
    {.name = "max-num-queued-reqs",
     .placeholder = "N",
     .limits = {1, 16777216},
     .default_text = "1024",
     .help = "Sequences that may wait for their turn; a request with n choices counts n times.",
     .commands = kMany,
     .to = kTo<&Settings::load, &LoadOptions::max_queued>},
    {.name = "max-num-queued-tokens",
     .placeholder = "N",
     .limits = {1, kMaxTokens},
     .default_text = "four times what the cache holds",
     .help = "Prompt tokens of all waiting requests together.",
     .commands = kMany,
     .to = kTo<&Settings::load, &LoadOptions::max_queued_tokens>},
    {.name = "batch-timeout-ms",
     .placeholder = "MS",
     .limits = {0, 60000},
     .default_text = "0",
     .help = "When idle, wait up to MS ms for --batch-size requests.",
     .commands = kMany,
     .needs = "batch-size",
     .to = kTo<&Settings::load, &LoadOptions::batch_timeout_ms>},
    {.name = "batch-size",
     .placeholder = "N",
     .limits = {1, 65536},
     .default_text = "1",
     .help = "When idle, begin as soon as N requests wait; see --batch-timeout-ms.",
     .commands = kMany,
     .needs = "batch-timeout-ms",
     .to = kTo<&Settings::load, &LoadOptions::batch_size>},
    {.name = "max-step-slowdown",
     .placeholder = "X",
     .kind = OptionKind::number,
     .limits = {0, 1000},
     .default_text = "0, no limit",
     .help = kStepSlowdownHelp,
     .commands = kLoading & ~kLimitsSlowdown,
     .apply = apply_step_slowdown},
    {.default_text = "2.5", .help = kStepSlowdownHelp, .commands = kLimitsSlowdown},
    {.name = "no-prefix-caching",
     .help = "Compute every prompt from its first token, even if another began the same way.",
     .apply = [](Settings& s, const OptionValue& v) { s.load.prefix_caching = !as_flag(v); }},
    {.name = "trace",
     .placeholder = "FILE",
     .help = "Write every step of the batch to FILE; `paceline trace FILE` shows it.",
     .to = kTo<&Settings::load, &LoadOptions::trace_file>},
};

}  // namespace

std::vector<OptionDef> batching_options() {
  return section(OptionGroup::batching, kLoading, kBatchingOptions);
}

}  // namespace paceline
