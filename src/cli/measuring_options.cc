// Options that say what perplexity and bench measure.
#include "cli/option_groups.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr OptionDef kMeasuringOptions[] = {
    {.name = "max-positions",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 1e15},
     .default_text = "all",
     .help = "Measure the first N tokens of the text only.",
     .group = OptionGroup::measuring,
     .commands = set_of({perplexity}),
     .apply = [](Settings& s, const OptionValue& v) { s.max_positions = as_integer(v); }},
    {.name = "shape",
     .placeholder = "NAME",
     .kind = OptionKind::choice,
     .choices = "small llama-3.2-1b qwen3-0.6b gemma-3-1b",
     .default_text = "the bundled model, then small",
     .help =
         "Measure random weights in the shape of a known model: small, llama-3.2-1b, qwen3-0.6b "
         "or gemma-3-1b.",
     .group = OptionGroup::measuring,
     .commands = set_of({bench}),
     .apply = [](Settings& s, const OptionValue& v) { s.shape = as_text(v); }},
    {.name = "prompt-tokens",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 1e6},
     .default_text = "512",
     .help = "Prefill N tokens.",
     .group = OptionGroup::measuring,
     .commands = set_of({bench}),
     .apply = [](Settings& s, const OptionValue& v) { s.prompt_tokens = as_integer(v); }},
    {.name = "output-tokens",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {2, 1e6},
     .default_text = "64",
     .help = "Decode N tokens.",
     .group = OptionGroup::measuring,
     .commands = set_of({bench}),
     .apply = [](Settings& s, const OptionValue& v) { s.output_tokens = as_integer(v); }},
    {.name = "batch",
     .help = "Measure batches: rates by the number of sequences, cached prompts, gaps, memory.",
     .group = OptionGroup::measuring,
     .commands = set_of({bench}),
     .apply = [](Settings& s, const OptionValue& v) { s.bench_batch = as_flag(v); }},
    {.name = "repetitions",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 1000},
     .default_text = "3",
     .help = "Measure everything N times and report the median.",
     .group = OptionGroup::measuring,
     .commands = set_of({bench}),
     .apply = [](Settings& s, const OptionValue& v) { s.repetitions = as_integer(v); }},
};

}  // namespace

std::span<const OptionDef> measuring_options() { return kMeasuringOptions; }

}  // namespace paceline
