// Options of the step loop: how many requests run together, and how they share.
#include "cli/option_groups.h"

namespace paceline {
namespace {

using enum CommandId;

// Commands that have many requests.
constexpr CommandSet kMany = set_of({generate, classify, score, batch, serve});

constexpr OptionDef kBatchingOptions[] = {
    {.name = "max-num-batched-tokens",
     .aliases = "-b",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 65536},
     .default_text = "512",
     .help = "Tokens computed in one step; longer prompts are computed in pieces.",
     .group = OptionGroup::batching,
     .commands = kOnModel,
     .apply = [](Settings& s,
                 const OptionValue& v) { s.load.max_num_batched_tokens = as_integer(v); }},
    {.name = "max-num-seqs",
     .aliases = "--parallel",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 65536},
     .default_text = "256",
     .help = "Sequences computed at once.",
     .group = OptionGroup::batching,
     .commands = kOnModel & ~set_of({bench}),
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.load.max_num_seqs = as_integer(v);
           s.max_num_seqs = as_integer(v);
         }},
    {.name = "prefill-chunk",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 65536},
     .default_text = "as many as a step has room for",
     .help = "Tokens of one prompt that are computed in one step at most.",
     .group = OptionGroup::batching,
     .commands = kLoading,
     .apply = [](Settings& s, const OptionValue& v) { s.load.max_chunk = as_integer(v); }},
    {.name = "max-tokens-per-sequence",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, kMaxTokens},
     .default_text = "all the cache holds",
     .help = "Tokens that one sequence may hold in the cache, prompt and output together.",
     .group = OptionGroup::batching,
     .commands = kLoading,
     .apply = [](Settings& s,
                 const OptionValue& v) { s.load.max_tokens_per_sequence = as_integer(v); }},
    {.name = "max-num-queued-reqs",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 16777216},
     .default_text = "1024",
     .help = "Sequences that may wait for their turn; a request counts for its choices.",
     .group = OptionGroup::batching,
     .commands = kMany,
     .apply = [](Settings& s, const OptionValue& v) { s.load.max_queued = as_integer(v); }},
    {.name = "max-num-queued-tokens",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, kMaxTokens},
     .default_text = "four times what the cache holds",
     .help = "Tokens that the prompts of waiting requests may have together.",
     .group = OptionGroup::batching,
     .commands = kMany,
     .apply = [](Settings& s, const OptionValue& v) { s.load.max_queued_tokens = as_integer(v); }},
    {.name = "batch-timeout-ms",
     .placeholder = "MS",
     .kind = OptionKind::integer,
     .limits = {0, 60000},
     .default_text = "0",
     .help = "An idle engine waits so long for --batch-size requests before it begins.",
     .group = OptionGroup::batching,
     .commands = kMany,
     .apply = [](Settings& s, const OptionValue& v) { s.load.batch_timeout_ms = as_integer(v); }},
    {.name = "batch-size",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 65536},
     .default_text = "1",
     .help = "Requests that an idle engine waits for, at most --batch-timeout-ms.",
     .group = OptionGroup::batching,
     .commands = kMany,
     .apply = [](Settings& s, const OptionValue& v) { s.load.batch_size = as_integer(v); }},
    {.name = "max-step-slowdown",
     .placeholder = "X",
     .kind = OptionKind::number,
     .limits = {0, 1000},
     .default_text = "2.5 for serve, else 0: no limit",
     .help = "Let a step with a prompt in it take at most X times one that only continues answers.",
     .group = OptionGroup::batching,
     .commands = kLoading,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.load.max_step_slowdown = std::get<double>(v);
           s.max_step_slowdown = std::get<double>(v);
         }},
    {.name = "no-prefix-caching",
     .help = "Compute every prompt from its first token, though another one began alike.",
     .group = OptionGroup::batching,
     .commands = kLoading,
     .apply = [](Settings& s, const OptionValue& v) { s.load.prefix_caching = !as_flag(v); }},
    {.name = "trace",
     .placeholder = "FILE",
     .kind = OptionKind::text,
     .help = "Write every step of the batch to FILE, for `paceline trace FILE`.",
     .group = OptionGroup::batching,
     .commands = kLoading,
     .apply = [](Settings& s, const OptionValue& v) { s.load.trace_file = as_text(v); }},
};

}  // namespace

std::span<const OptionDef> batching_options() { return kBatchingOptions; }

}  // namespace paceline
