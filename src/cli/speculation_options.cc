// Options of speculative decoding.
#include "cli/option_groups.h"
#include "engine/request.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr CommandSet kSpeculating = set_of({generate, chat, batch, bench, serve});
constexpr double kMostTokens = kMaxSpeculativeTokens;
constexpr double kLongestSuffix = 16;

constexpr OptionDef kSpeculationOptions[] = {
    {.name = "speculative-model",
     .aliases = "-md --model-draft",
     .placeholder = "MODEL",
     .kind = OptionKind::text,
     .help = "Smaller model of the same tokenizer that drafts tokens ahead.",
     .group = OptionGroup::speculation,
     .commands = kSpeculating | set_of({inspect}),
     .apply = [](Settings& s, const OptionValue& v) { s.load.speculative_model = as_text(v); }},
    {.name = "speculative-method",
     .placeholder = "METHOD",
     .kind = OptionKind::text,
     .default_text = "model with --speculative-model, else none",
     .help = "What drafts: model, or ngram, which repeats what followed the last tokens before.",
     .group = OptionGroup::speculation,
     .commands = kSpeculating,
     .apply = [](Settings& s, const OptionValue& v) { s.load.speculative_method = as_text(v); }},
    {.name = "num-speculative-tokens",
     .aliases = "--draft-max",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, kMostTokens},
     .default_text = "8",
     .help = "Tokens to draft in a step, at most.",
     .group = OptionGroup::speculation,
     .commands = kSpeculating,
     .needs = "speculative-model speculative-method speculative-config",
     .apply = [](Settings& s,
                 const OptionValue& v) { s.load.num_speculative_tokens = as_integer(v); }},
    {.name = "no-adaptive-drafts",
     .help =
         "Draft --num-speculative-tokens in every step, even where it costs more than it saves.",
     .group = OptionGroup::speculation,
     .commands = kSpeculating,
     .needs = "speculative-model speculative-method speculative-config",
     .apply = [](Settings& s, const OptionValue& v) { s.load.adaptive_drafts = !as_flag(v); }},
    {.name = "prompt-lookup-min",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, kLongestSuffix},
     .default_text = "2",
     .help = "Shortest run of last tokens that ngram looks for.",
     .group = OptionGroup::speculation,
     .commands = kSpeculating,
     .needs = "speculative-method=ngram speculative-config",
     .apply = [](Settings& s, const OptionValue& v) { s.load.prompt_lookup_min = as_integer(v); }},
    {.name = "prompt-lookup-max",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, kLongestSuffix},
     .default_text = "5",
     .help = "Longest run of last tokens that ngram looks for.",
     .group = OptionGroup::speculation,
     .commands = kSpeculating,
     .needs = "speculative-method=ngram speculative-config",
     .apply = [](Settings& s, const OptionValue& v) { s.load.prompt_lookup_max = as_integer(v); }},
    {.name = "spec-accept",
     .placeholder = "RULE",
     .kind = OptionKind::choice,
     .choices = "coupled rejection",
     .default_text = "coupled",
     .help = "coupled keeps every bit of an answer; above temperature 0, rejection keeps the "
             "distribution of answers, not their bits.",
     .group = OptionGroup::speculation,
     .commands = kSpeculating,
     .needs = "speculative-model speculative-method speculative-config",
     .apply = [](Settings& s, const OptionValue& v) { s.load.spec_accept = as_text(v); }},
    {.name = "speculative-config",
     .placeholder = "JSON",
     .kind = OptionKind::text,
     .help = "The settings above as vLLM's object: {\"method\": \"ngram\", ...}.",
     .group = OptionGroup::speculation,
     .commands = kSpeculating,
     .apply = [](Settings& s, const OptionValue& v) { s.load.speculative_config = as_text(v); }},
};

}  // namespace

std::span<const OptionDef> speculation_options() { return kSpeculationOptions; }

}  // namespace paceline
