// Options that most commands have.
#include "cli/option_groups.h"

namespace paceline {
namespace {

// The commands that draw tokens. In others the seed is only for dummy weights.
constexpr CommandSet kSeeded = kWriting | set_of({CommandId::classify, CommandId::batch});

constexpr OptionDef kGeneralOptions[] = {
    {.name = "seed",
     .aliases = "-s",
     .placeholder = "N",
     .kind = OptionKind::seed,
     .default_text = "random",
     .help = "Seed of the draw, and of dummy weights: the same seed gives the same text.",
     .group = OptionGroup::general,
     .commands = kSeeded,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.generate.seed = std::get<uint64_t>(v);
           s.load.seed = std::get<uint64_t>(v);
         }},
    {.name = "seed",
     .aliases = "-s",
     .placeholder = "N",
     .kind = OptionKind::seed,
     .default_text = "0",
     .help = "Seed of the random weights of --load-format dummy.",
     .group = OptionGroup::general,
     .commands = kLoading & ~kSeeded,
     .needs = "load-format=dummy shape",
     .apply = [](Settings& s, const OptionValue& v) { s.load.seed = std::get<uint64_t>(v); }},
    {.name = "config",
     .placeholder = "FILE",
     .kind = OptionKind::text,
     .help = "Read options from a TOML file, or from a YAML file (.yaml, .yml).",
     .group = OptionGroup::general,
     .apply = [](Settings&, const OptionValue&) {}},  // read before all other options
    {.name = "verbose",
     .aliases = "-v",
     .help = "Report what was loaded and how fast it ran, on standard error.",
     .group = OptionGroup::general,
     .apply = [](Settings& s, const OptionValue& v) { s.verbose = as_flag(v); }},
    {.name = "quiet",
     .aliases = "-q",
     .help = "Print only errors on standard error: no notes, no progress.",
     .group = OptionGroup::general,
     .excludes = "verbose",
     .apply = [](Settings& s, const OptionValue& v) { s.quiet = as_flag(v); }},
    {.name = "help",
     .aliases = "-h",
     .help = "Print the most used options.",
     .group = OptionGroup::general,
     .flag_only = true,
     .apply = [](Settings& s, const OptionValue& v) { s.help = as_flag(v); }},
    {.name = "help-all",
     .help = "Print every option.",
     .group = OptionGroup::general,
     .flag_only = true,
     .apply = [](Settings& s, const OptionValue& v) { s.help_all = as_flag(v); }},
};

}  // namespace

std::span<const OptionDef> general_options() { return kGeneralOptions; }

}  // namespace paceline
