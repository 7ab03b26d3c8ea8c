// Options of speculative decoding.
#include "cli/option_groups.h"
#include "engine/request.h"
#include "load/draft_model.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr CommandSet kSpeculating = set_of({generate, chat, batch, bench, serve});
constexpr double kMostTokens = kMaxSpeculativeTokens;
constexpr double kLongestSuffix = 16;

constexpr OptionDef kSpeculationOptions[] = {
    option("speculative-model", kTo<&Settings::load, &LoadOptions::speculative_model>,
           "Smaller model of the same tokenizer that drafts tokens ahead.",
           {.aliases = "-md --model-draft",
            .placeholder = "MODEL",
            .commands = kSpeculating | set_of({inspect})}),
    option("speculative-method",
           {OptionKind::text,
            [](Settings& s, const OptionValue& v) {
              s.load.speculative_method = read_draft_method(as_text(v), "--speculative-method");
            }},
           "What drafts: model, or ngram, which repeats what followed the last tokens before.",
           {.placeholder = "METHOD", .default_text = "model with --speculative-model, else none"}),
    option("num-speculative-tokens", kTo<&Settings::load, &LoadOptions::num_speculative_tokens>,
           "Tokens to draft in a step, at most.",
           {.aliases = "--draft-max",
            .limits = {1, kMostTokens},
            .default_text = "8",
            .needs = "speculative-model speculative-method speculative-config"}),
    option("no-adaptive-drafts", kNot<&Settings::load, &LoadOptions::adaptive_drafts>,
           "Draft --num-speculative-tokens in every step, even where it costs more than it saves.",
           {.needs = "speculative-model speculative-method speculative-config"}),
    option("prompt-lookup-min", kTo<&Settings::load, &LoadOptions::prompt_lookup_min>,
           "Shortest run of last tokens that ngram looks for.",
           {.limits = {1, kLongestSuffix}, .needs = "speculative-method=ngram speculative-config"}),
    option("prompt-lookup-max", kTo<&Settings::load, &LoadOptions::prompt_lookup_max>,
           "Longest run of last tokens that ngram looks for.",
           {.limits = {1, kLongestSuffix}, .needs = "speculative-method=ngram speculative-config"}),
    option("spec-accept", kTo<&Settings::load, &LoadOptions::spec_accept>,
           "coupled keeps every bit of an answer; above temperature 0, rejection keeps the "
           "distribution of answers, not their bits.",
           {.placeholder = "RULE",
            .choices = "coupled rejection",
            .needs = "speculative-model speculative-method speculative-config"}),
    option("speculative-config", kTo<&Settings::load, &LoadOptions::speculative_config>,
           "The settings above as vLLM's object: {\"method\": \"ngram\", ...}.",
           {.placeholder = "JSON"}),
};

}  // namespace

std::vector<OptionDef> speculation_options() {
  return section(OptionGroup::speculation, kSpeculating, kSpeculationOptions);
}

}  // namespace paceline
