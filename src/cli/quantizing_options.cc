// Options of quantize and fuse: the format of a model's matrices, and measuring the loss.
#include <charconv>

#include "cli/option_groups.h"

namespace paceline {
namespace {

using enum CommandId;

// Converts one of the choices, which are all numbers.
int64_t as_number(const OptionValue& value) {
  const std::string& text = as_text(value);
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

constexpr OptionDef kQuantizingOptions[] = {
    {.name = "bits",
     .placeholder = "N",
     .kind = OptionKind::choice,
     .choices = "2 3 4 5 6 8",
     .default_text = "4",
     .help = "Bits of each weight: 2, 3, 4, 5, 6 or 8.",
     .group = OptionGroup::quantizing,
     .commands = set_of({quantize}),
     .apply = [](Settings& s, const OptionValue& v) { s.bits = as_number(v); }},
    {.name = "bits",
     .placeholder = "N",
     .kind = OptionKind::choice,
     .choices = "2 3 4 5 6 8",
     .default_text = "not quantised",
     .help = "Quantise the fused model: bits of each weight, 2, 3, 4, 5, 6 or 8.",
     .group = OptionGroup::quantizing,
     .commands = set_of({fuse}),
     .apply = [](Settings& s, const OptionValue& v) { s.bits = as_number(v); }},
    {.name = "group-size",
     .placeholder = "N",
     .kind = OptionKind::choice,
     .choices = "32 64 128",
     .default_text = "64",
     .help = "Weights that share a scale and an offset: 32, 64 or 128.",
     .group = OptionGroup::quantizing,
     .commands = set_of({quantize, fuse}),
     .apply = [](Settings& s, const OptionValue& v) { s.group_size = as_number(v); }},
    {.name = "recipe",
     .placeholder = "NAME",
     .kind = OptionKind::choice,
     .choices = "mixed_2_6 mixed_3_4 mixed_3_6 mixed_4_6",
     .default_text = "every matrix in --bits",
     .help = "More bits for the head and some value and down projections: mixed_2_6, mixed_3_4, "
             "mixed_3_6 or mixed_4_6.",
     .group = OptionGroup::quantizing,
     .commands = set_of({quantize}),
     .apply = [](Settings& s, const OptionValue& v) { s.recipe = as_text(v); }},
    {.name = "check",
     .placeholder = "FILE",
     .kind = OptionKind::text,
     .default_text = "off",
     .help = "Text file whose perplexity is measured before and after.",
     .group = OptionGroup::quantizing,
     .commands = set_of({quantize}),
     .apply = [](Settings& s, const OptionValue& v) { s.check = as_text(v); }},
};

}  // namespace

std::span<const OptionDef> quantizing_options() { return kQuantizingOptions; }

}  // namespace paceline
