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
     .help = "Smaller model of the same tokenizer that drafts tokens ahead.",
     .commands = kSpeculating | set_of({inspect}),
     .to = kTo<&Settings::load, &LoadOptions::speculative_model>},
    {.name = "speculative-method",
     .placeholder = "METHOD",
     .default_text = "model with --speculative-model, else none",
     .help = "What drafts: model, or ngram, which repeats what followed the last tokens before.",
     .to = kTo<&Settings::load, &LoadOptions::speculative_method>},
    {.name = "num-speculative-tokens",
     .aliases = "--draft-max",
     .placeholder = "N",
     .limits = {1, kMostTokens},
     .default_text = "8",
     .help = "Tokens to draft in a step, at most.",
     .needs = "speculative-model speculative-method speculative-config",
     .to = kTo<&Settings::load, &LoadOptions::num_speculative_tokens>},
    {.name = "no-adaptive-drafts",
     .help =
         "Draft --num-speculative-tokens in every step, even where it costs more than it saves.",
     .needs = "speculative-model speculative-method speculative-config",
     .apply = [](Settings& s, const OptionValue& v) { s.load.adaptive_drafts = !as_flag(v); }},
    {.name = "prompt-lookup-min",
     .placeholder = "N",
     .limits = {1, kLongestSuffix},
     .default_text = "2",
     .help = "Shortest run of last tokens that ngram looks for.",
     .needs = "speculative-method=ngram speculative-config",
     .to = kTo<&Settings::load, &LoadOptions::prompt_lookup_min>},
    {.name = "prompt-lookup-max",
     .placeholder = "N",
     .limits = {1, kLongestSuffix},
     .default_text = "5",
     .help = "Longest run of last tokens that ngram looks for.",
     .needs = "speculative-method=ngram speculative-config",
     .to = kTo<&Settings::load, &LoadOptions::prompt_lookup_max>},
    {.name = "spec-accept",
     .placeholder = "RULE",
     .choices = "coupled rejection",
     .default_text = "coupled",
     .help = "coupled keeps every bit of an answer; above temperature 0, rejection keeps the "
             "distribution of answers, not their bits.",
     .needs = "speculative-model speculative-method speculative-config",
     .to = kTo<&Settings::load, &LoadOptions::spec_accept>},
    {.name = "speculative-config",
     .placeholder = "JSON",
     .help = "The settings above as vLLM's object: {\"method\": \"ngram\", ...}.",
     .to = kTo<&Settings::load, &LoadOptions::speculative_config>},
};

}  // namespace

std::vector<OptionDef> speculation_options() {
  return section(OptionGroup::speculation, kSpeculating, kSpeculationOptions);
}

}  // namespace paceline
