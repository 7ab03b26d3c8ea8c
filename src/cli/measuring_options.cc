// Options of perplexity and bench.
#include "cli/option_groups.h"
#include "engine/request.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr OptionDef kMeasuringOptions[] = {
    {.name = "max-positions",
     .placeholder = "N",
     .limits = {1, 1e15},
     .default_text = "all",
     .help = "Measure only the first N tokens of the text.",
     .commands = set_of({perplexity}),
     .to = kTo<&Settings::max_positions>},
    {.name = "shape",
     .placeholder = "NAME",
     .choices = "small llama-3.2-1b qwen3-0.6b gemma-3-1b olmoe-1b-7b",
     .default_text = "the bundled model, then small",
     .help = "Model shape to measure, with random weights: small, llama-3.2-1b, qwen3-0.6b, "
             "gemma-3-1b or olmoe-1b-7b (a mixture of experts).",
     .excludes = "model",
     .to = kTo<&Settings::bench, &BenchChoice::shape>},
    {.name = "tests",
     .placeholder = "TEST,...",
     .choices = "prefill decode batch mixed classify cached memory speculate",
     .default_text = "prefill,decode",
     .help = "Tests to run: prefill, decode, batch (sequences together), mixed (streams beside a "
             "prompt), classify, cached (a prompt whose beginning is cached), memory (of one "
             "sequence), speculate (decode with and without drafts).",
     .to = kTo<&Settings::bench, &BenchChoice::tests>},
    {.name = "prompt-tokens",
     .placeholder = "N,...",
     .limits = {1, 1e6},
     .default_text = "512; batch and speculate 128, mixed and cached 1000, classify 20",
     .help = "Prompt lengths to measure, in tokens.",
     .to = kTo<&Settings::bench, &BenchChoice::prompt_tokens>},
    {.name = "contexts",
     .placeholder = "N,...",
     .limits = {1, 1e6},
     .default_text = "1",
     .help = "Context lengths at which to measure decode.",
     .to = kTo<&Settings::bench, &BenchChoice::contexts>},
    {.name = "sequences",
     .placeholder = "N,...",
     .limits = {1, 1024},
     .default_text = "batch 1,8,32, classify 1,4,8,32, mixed 1, speculate 1,4,16",
     .help = "Numbers of sequences to run together; in mixed, of streams beside the prompt.",
     .to = kTo<&Settings::bench, &BenchChoice::sequences>},
    {.name = "output-tokens",
     .placeholder = "N",
     .limits = {2, 1e6},
     .default_text = "64; speculate 128",
     .help = "Tokens to decode in each sequence.",
     .to = kTo<&Settings::bench, &BenchChoice::output_tokens>},
    {.name = "formats",
     .placeholder = "FORMAT,...",
     .choices = "f32 f16 bf16 q8 q4",
     .default_text = "the model's, or --dtype and --quantize",
     .help = "Weight formats to measure, one after another: f32, f16, bf16, q8, q4.",
     .excludes = "quantize dtype",
     .to = kTo<&Settings::bench, &BenchChoice::formats>},
    {.name = "acceptance",
     .placeholder = "A,...",
     .limits = {0, 1},
     .default_text = "0.3,0.5,0.7,0.8,0.9,1",
     .help = "Probabilities that a drafted token is accepted, where speculate has no drafter and "
             "replays answers with errors.",
     .to = kTo<&Settings::bench, &BenchChoice::acceptance>},
    {.name = "draft-lengths",
     .placeholder = "K,...",
     .limits = {1, kMaxSpeculativeTokens},
     .default_text = "1,2,4,8 without a drafter, else none",
     .help = "Fixed lengths of drafts that speculate measures beside the adaptive length.",
     .to = kTo<&Settings::bench, &BenchChoice::draft_lengths>},
    {.name = "temperatures",
     .placeholder = "T,...",
     .limits = {0, 2},
     .default_text = "0",
     .help = "Temperatures at which speculate draws tokens with a drafter.",
     .to = kTo<&Settings::bench, &BenchChoice::temperatures>},
    {.name = "prompt-texts",
     .placeholder = "KIND",
     .choices = "random repeating stories",
     .default_text = "repeating with ngram, stories with a draft model",
     .help = "Prompts of speculate with a drafter: random tokens, texts that repeat themselves, or "
             "beginnings of stories.",
     .to = kTo<&Settings::bench, &BenchChoice::prompt_texts>},
    {.name = "threads",
     .aliases = "-t",
     .placeholder = "N,...",
     .limits = {0, 1024},
     .default_text = "0, one per usable core",
     .help = "Numbers of threads to measure with.",
     .to = kTo<&Settings::bench, &BenchChoice::threads>},
    {.name = "repetitions",
     .placeholder = "N",
     .limits = {1, 1000},
     .default_text = "3",
     .help = "Repeat each run up to N times, for at most 10 s, and report the median.",
     .to = kTo<&Settings::bench, &BenchChoice::repetitions>},
    {.name = "roofline",
     .help = "Also report the machine's limits (read bandwidth, multiply rates) and how decode was "
             "tuned to it.",
     .to = kTo<&Settings::bench, &BenchChoice::roofline>},
    {.name = "plan",
     .help = "Print what would be measured, and stop.",
     .to = kTo<&Settings::bench, &BenchChoice::plan>},
};

}  // namespace

std::vector<OptionDef> measuring_options() {
  return section(OptionGroup::measuring, set_of({bench}), kMeasuringOptions);
}

}  // namespace paceline
