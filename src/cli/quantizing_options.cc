// Options of quantize, fuse and convert: the format of a model's matrices, and measuring the loss.
#include "cli/option_groups.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr OptionDef kQuantizingOptions[] = {
    option("bits", kTo<&Settings::bits>, "Bits of each weight: 2, 3, 4, 5, 6 or 8.",
           {.placeholder = "N", .choices = "2 3 4 5 6 8", .default_text = "4"}),
    elsewhere("Quantise the fused model: bits of each weight, 2, 3, 4, 5, 6 or 8.",
              {.default_text = "not quantised", .commands = set_of({fuse})}),
    option("group-size", kTo<&Settings::group_size>,
           "Weights that share a scale and an offset: 32, 64 or 128.",
           {.placeholder = "N",
            .choices = "32 64 128",
            .default_text = "64",
            .commands = set_of({quantize, fuse})}),
    option("recipe", kTo<&Settings::recipe>,
           "More bits for the head and some value and down projections: mixed_2_6, mixed_3_4, "
           "mixed_3_6 or mixed_4_6.",
           {.placeholder = "NAME",
            .choices = "mixed_2_6 mixed_3_4 mixed_3_6 mixed_4_6",
            .default_text = "every matrix in --bits"}),
    option(
        "gguf-type", kTo<&Settings::gguf_type>,
        "Type of a GGUF file's matrices, where --output is FILE.gguf: f32, f16, bf16, q8_0, q4_0 "
        "or q4_k_m.",
        {.placeholder = "TYPE",
         .choices = "f32 f16 bf16 q8_0 q4_0 q4_k_m",
         .default_text = "as stored",
         .commands = set_of({convert, fuse})}),
    elsewhere(
        "Type of a GGUF file's matrices, where --output is FILE.gguf: q8_0, q4_0 or q4_k_m.",
        {.choices = "q8_0 q4_0 q4_k_m", .default_text = "q4_k_m", .commands = set_of({quantize})}),
    option("calibrate", kTo<&Settings::calibrate>,
           "Text file that the model reads first, to choose scales and codes for what its matrices "
           "are multiplied by (GPTQ).",
           {.placeholder = "FILE", .default_text = "off"}),
    option("check", kTo<&Settings::check>,
           "Text file whose perplexity is measured before and after.",
           {.placeholder = "FILE", .default_text = "off"}),
};

}  // namespace

std::vector<OptionDef> quantizing_options() {
  return section(OptionGroup::quantizing, set_of({quantize}), kQuantizingOptions);
}

}  // namespace paceline
