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
     .commands = kSeeded,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.generate.seed = std::get<uint64_t>(v);
           s.load.seed = std::get<uint64_t>(v);
         }},
    {.kind = OptionKind::seed,
     .default_text = "0",
     .help = "Seed of the random weights of --load-format dummy.",
     .commands = kLoading & ~kSeeded,
     .needs = "load-format=dummy shape",
     .to = kTo<&Settings::load, &LoadOptions::seed>},
    {.name = "config",
     .placeholder = "FILE",
     .kind = OptionKind::text,
     .help = "Read options from a TOML file, or from a YAML file (.yaml, .yml).",
     .apply = [](Settings&, const OptionValue&) {}},  // read before all other options
    {.name = "verbose",
     .aliases = "-v",
     .help = "Report what was loaded and how fast it ran, on standard error.",
     .to = kTo<&Settings::verbose>},
    {.name = "quiet",
     .aliases = "-q",
     .help = "Print only errors on standard error: no notes, no progress.",
     .excludes = "verbose",
     .to = kTo<&Settings::quiet>},
    {.name = "help",
     .aliases = "-h",
     .help = "Print the most used options.",
     .flag_only = true,
     .to = kTo<&Settings::help>},
    {.name = "help-all",
     .help = "Print every option.",
     .flag_only = true,
     .to = kTo<&Settings::help_all>},
};

}  // namespace

std::vector<OptionDef> general_options() {
  return section(OptionGroup::general, kEveryCommand, kGeneralOptions);
}

}  // namespace paceline
