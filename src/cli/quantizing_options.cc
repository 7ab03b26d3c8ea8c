// Options of quantize and fuse: the format of a model's matrices, and measuring the loss.
#include "cli/option_groups.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr OptionDef kQuantizingOptions[] = {
    {.name = "bits",
     .placeholder = "N",
     .choices = "2 3 4 5 6 8",
     .default_text = "4",
     .help = "Bits of each weight: 2, 3, 4, 5, 6 or 8.",
     .to = kTo<&Settings::bits>},
    {.default_text = "not quantised",
     .help = "Quantise the fused model: bits of each weight, 2, 3, 4, 5, 6 or 8.",
     .commands = set_of({fuse})},
    {.name = "group-size",
     .placeholder = "N",
     .choices = "32 64 128",
     .default_text = "64",
     .help = "Weights that share a scale and an offset: 32, 64 or 128.",
     .commands = set_of({quantize, fuse}),
     .to = kTo<&Settings::group_size>},
    {.name = "recipe",
     .placeholder = "NAME",
     .choices = "mixed_2_6 mixed_3_4 mixed_3_6 mixed_4_6",
     .default_text = "every matrix in --bits",
     .help = "More bits for the head and some value and down projections: mixed_2_6, mixed_3_4, "
             "mixed_3_6 or mixed_4_6.",
     .to = kTo<&Settings::recipe>},
    {.name = "check",
     .placeholder = "FILE",
     .default_text = "off",
     .help = "Text file whose perplexity is measured before and after.",
     .to = kTo<&Settings::check>},
};

}  // namespace

std::vector<OptionDef> quantizing_options() {
  return section(OptionGroup::quantizing, set_of({quantize}), kQuantizingOptions);
}

}  // namespace paceline
