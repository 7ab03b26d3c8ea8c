// Options of the step loop: how many requests run together, and how they share.

#include "base/error.h"
#include "cli/option_groups.h"

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
    throw error_of(ErrorCode::invalid,
                   "--max-step-slowdown: found {}, expected 0, or 1 "
                   "and more: a prompt makes no step faster",
                   factor);
  }
  settings.load.max_step_slowdown = std::get<double>(value);
  settings.max_step_slowdown = std::get<double>(value);
}

void apply_max_num_seqs(Settings& settings, const OptionValue& value) {
  settings.load.max_num_seqs = as_integer(value);
  settings.max_num_seqs = as_integer(value);
}

constexpr OptionDef kBatchingOptions[] = {
    option("max-num-batched-tokens", kTo<&Settings::load, &LoadOptions::max_num_batched_tokens>,
           "Tokens computed in one step; longer prompts take several steps.",
           {.aliases = "-b",
            .limits = {1, 65536},
            .default_text = "512; on a GPU 8192, or fewer where its memory is small",
            .commands = kOnModel}),
    option("max-num-seqs", {OptionKind::integer, apply_max_num_seqs}, "Sequences computed at once.",
           {.aliases = "--parallel -np",
            .limits = {1, 65536},
            .default_text = "256",
            .commands = set_of({batch, serve})}),
    elsewhere("Sequences computed at once.",
              {.default_text = "256 with --jsonl, else one for each prompt",
               .commands = set_of({generate, chat, classify, decide, score, embed})}),
    elsewhere("Sequences that the cache has room for.",
              {.default_text = "1", .commands = set_of({perplexity, inspect})}),
    option("prefill-chunk", kTo<&Settings::load, &LoadOptions::max_chunk>,
           "Most tokens of one prompt to compute in one step.",
           {.limits = {1, 65536}, .default_text = "--max-num-batched-tokens"}),
    option("max-run-steps", kTo<&Settings::load, &LoadOptions::max_run_steps>,
           "Steps that a GPU decodes without the CPU, if no request comes or goes; 1: none.",
           {.limits = {1, 65536}, .needs = "!device=cpu"}),
    option("max-tokens-per-sequence", kTo<&Settings::load, &LoadOptions::max_tokens_per_sequence>,
           "Most cached tokens of one sequence, prompt and output together.",
           {.limits = {1, kMaxTokens}, .default_text = "all that the cache holds"}),
    option("max-num-queued-reqs", kTo<&Settings::load, &LoadOptions::max_queued>,
           "Sequences that may wait for their turn; a request with n choices counts n times.",
           {.limits = {1, 16777216}, .commands = kMany}),
    option("max-num-queued-tokens", kTo<&Settings::load, &LoadOptions::max_queued_tokens>,
           "Prompt tokens of all waiting requests together.",
           {.limits = {1, kMaxTokens},
            .default_text = "four times what the cache holds",
            .commands = kMany}),
    option("batch-timeout-ms", kTo<&Settings::load, &LoadOptions::batch_timeout_ms>,
           "When idle, wait up to MS ms for --batch-size requests.",
           {.placeholder = "MS", .limits = {0, 60000}, .commands = kMany, .needs = "batch-size"}),
    option("batch-size", kTo<&Settings::load, &LoadOptions::batch_size>,
           "When idle, begin as soon as N requests wait; see --batch-timeout-ms.",
           {.limits = {1, 65536}, .commands = kMany, .needs = "batch-timeout-ms"}),
    option("max-step-slowdown", {OptionKind::number, apply_step_slowdown}, kStepSlowdownHelp,
           {.limits = {0, 1000},
            .default_text = "0, no limit",
            .commands = kLoading & ~kLimitsSlowdown}),
    elsewhere(kStepSlowdownHelp, {.default_text = "2.5", .commands = set_of({bench})}),
    elsewhere(kStepSlowdownHelp,
              {.default_text = "2.5; on a GPU steps of up to 25 ms are not limited",
               .commands = set_of({serve})}),
    option("no-prefix-caching", kNot<&Settings::load, &LoadOptions::prefix_caching>,
           "Compute every prompt from its first token, even if another began the same way."),
    option("trace", kTo<&Settings::load, &LoadOptions::trace_file>,
           "Write every step of the batch to FILE; `paceline trace FILE` shows it.",
           {.placeholder = "FILE"}),
};

}  // namespace

std::vector<OptionDef> batching_options() {
  return section(OptionGroup::batching, kLoading, kBatchingOptions);
}

}  // namespace paceline
