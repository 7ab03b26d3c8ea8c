// Options that most commands have.
#include "cli/option_groups.h"

namespace paceline {
namespace {

// The commands that draw tokens. In others the seed is only for dummy weights.
constexpr CommandSet kSeeded = kWriting | set_of({CommandId::classify, CommandId::batch});

constexpr OptionDef kGeneralOptions[] = {
    option("seed",
           {OptionKind::seed,
            [](Settings& s, const OptionValue& v) {
              s.generate.seed = std::get<uint64_t>(v);
              s.load.seed = std::get<uint64_t>(v);
            }},
           "Seed of the draw, and of dummy weights: the same seed gives the same text.",
           {.aliases = "-s", .placeholder = "N", .default_text = "random", .commands = kSeeded}),
    option("", kAs<OptionKind::seed, &Settings::load, &LoadOptions::seed>,
           "Seed of the random weights of --load-format dummy.",
           {.commands = kLoading & ~kSeeded, .needs = "load-format=dummy shape"}),
    // Read before all other options.
    option("config", {OptionKind::text, [](Settings&, const OptionValue&) {}},
           "Read options from a TOML file, or from a YAML file (.yaml, .yml).",
           {.placeholder = "FILE"}),
    option("verbose", kTo<&Settings::verbose>,
           "Report what was loaded and how fast it ran, on standard error.", {.aliases = "-v"}),
    option("quiet", kTo<&Settings::quiet>,
           "Print only errors on standard error: no notes, no progress.",
           {.aliases = "-q", .excludes = "verbose"}),
    option("stop-with-parent", kTo<&Settings::stop_with_parent>,
           "Stop when the program that started this one, or its pipe to standard input, has ended.",
           {.commands = set_of({CommandId::serve, CommandId::train})}),
    option("error-codes", kTo<&Settings::error_codes>,
           "Write an error's code before its message, for programs: \"paceline: not_found: ...\"."),
    option("help", kTo<&Settings::help>, "Print the most used options.",
           {.aliases = "-h", .flag_only = true}),
    option("help-all", kTo<&Settings::help_all>, "Print every option.", {.flag_only = true}),
};

}  // namespace

std::vector<OptionDef> general_options() {
  return section(OptionGroup::general, kEveryCommand, kGeneralOptions);
}

}  // namespace paceline
