// Options that most commands have.
#include "cli/option_groups.h"

namespace paceline {
namespace {

constexpr OptionDef kGeneralOptions[] = {
    {.name = "seed",
     .aliases = "-s",
     .placeholder = "N",
     .kind = OptionKind::seed,
     .default_text = "random for the draw, 0 for weights",
     .help = "Seed of the draw and of dummy weights: the same seed gives the same text.",
     .group = OptionGroup::general,
     .commands = kLoading,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.generate.seed = std::get<uint64_t>(v);
           s.load.seed = std::get<uint64_t>(v);
         }},
    {.name = "config",
     .placeholder = "FILE",
     .kind = OptionKind::text,
     .help = "Read options from a TOML file.",
     .group = OptionGroup::general,
     .apply = [](Settings&, const OptionValue&) {}},  // read before everything else
    {.name = "verbose",
     .aliases = "-v",
     .help = "Say on standard error what was loaded and how fast it ran.",
     .group = OptionGroup::general,
     .apply = [](Settings& s, const OptionValue& v) { s.verbose = as_flag(v); }},
    {.name = "quiet",
     .aliases = "-q",
     .help = "No notes and no progress on standard error, only errors.",
     .group = OptionGroup::general,
     .apply = [](Settings& s, const OptionValue& v) { s.quiet = as_flag(v); }},
    {.name = "help",
     .aliases = "-h",
     .help = "Print this help.",
     .group = OptionGroup::general,
     .flag_only = true,
     .apply = [](Settings& s, const OptionValue& v) { s.help = as_flag(v); }},
};

}  // namespace

std::span<const OptionDef> general_options() { return kGeneralOptions; }

}  // namespace paceline
