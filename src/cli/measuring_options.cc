// Options of perplexity and bench.
#include "cli/option_groups.h"
#include "engine/request.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr OptionDef kMeasuringOptions[] = {
    option("max-positions", kTo<&Settings::max_positions>,
           "Measure only the first N tokens of the text.",
           {.limits = {1, 1e15}, .default_text = "all", .commands = set_of({perplexity})}),
    elsewhere("Compare only the first N tokens of a text.",
              {.limits = {1, 1e15}, .default_text = "512", .commands = set_of({verify})}),
    option("against", kTo<&Settings::against>,
           "Implementation to compare with: transformers or mlx_lm.",
           {.placeholder = "NAME", .choices = "transformers mlx_lm", .commands = set_of({verify})}),
    option("python", kTo<&Settings::load, &LoadOptions::python>, "Python that has its package.",
           {.placeholder = "PATH", .commands = set_of({verify})}),
    elsewhere("Python that has the package of --backend.",
              {.placeholder = "PATH",
               .commands = set_of({generate, chat, classify, decide, score, batch, serve}),
               .needs = "backend"}),
    option("tolerance", kTo<&Settings::tolerance>,
           "How far log-probabilities may be apart before the exit code is 1.",
           {.placeholder = "D", .limits = {0, 1e6}, .commands = set_of({verify})}),
    option("shape", kTo<&Settings::bench, &BenchChoice::shape>,
           "Model shape to measure, with random weights: small, llama-3.2-1b, qwen3-0.6b, "
           "qwen3.5-0.8b (with states), gemma-3-1b or olmoe-1b-7b (a mixture of experts).",
           {.placeholder = "NAME",
            .choices = "small llama-3.2-1b qwen3-0.6b qwen3.5-0.8b gemma-3-1b olmoe-1b-7b",
            .default_text = "the bundled model, then small",
            .excludes = "model"}),
    option("tests", kTo<&Settings::bench, &BenchChoice::tests>,
           "Tests to run: prefill, decode, batch (sequences together), mixed (streams beside a "
           "prompt), classify, cached (a prompt whose beginning is cached), memory (of one "
           "sequence), speculate (decode with and without drafts).",
           {.placeholder = "TEST,...",
            .choices = "prefill decode batch mixed classify cached memory speculate",
            .default_text = "prefill,decode"}),
    option("prompt-tokens", kTo<&Settings::bench, &BenchChoice::prompt_tokens>,
           "Prompt lengths to measure, in tokens.",
           {.placeholder = "N,...",
            .limits = {1, 1e6},
            .default_text = "512; batch and speculate 128, mixed and cached 1000, classify 20"}),
    option("contexts", kTo<&Settings::bench, &BenchChoice::contexts>,
           "Context lengths at which to measure decode.",
           {.placeholder = "N,...", .limits = {1, 1e6}, .default_text = "1"}),
    option("sequences", kTo<&Settings::bench, &BenchChoice::sequences>,
           "Numbers of sequences to run together; in mixed, of streams beside the prompt.",
           {.placeholder = "N,...",
            .limits = {1, 1024},
            .default_text = "batch 1,8,32, classify 1,4,8,32, mixed 1, speculate 1,4,16"}),
    option("output-tokens", kTo<&Settings::bench, &BenchChoice::output_tokens>,
           "Tokens to decode in each sequence.",
           {.placeholder = "N", .limits = {2, 1e6}, .default_text = "64; speculate 128"}),
    option("formats", kTo<&Settings::bench, &BenchChoice::formats>,
           "Weight formats to measure, one after another: f32, f16, bf16, q8, q4.",
           {.placeholder = "FORMAT,...",
            .choices = "f32 f16 bf16 q8 q4",
            .default_text = "the model's, or --dtype and --quantize",
            .excludes = "quantize dtype"}),
    option("acceptance", kTo<&Settings::bench, &BenchChoice::acceptance>,
           "Probabilities that a drafted token is accepted, where speculate has no drafter and "
           "replays answers with errors.",
           {.placeholder = "A,...", .limits = {0, 1}, .default_text = "0.3,0.5,0.7,0.8,0.9,1"}),
    option("draft-lengths", kTo<&Settings::bench, &BenchChoice::draft_lengths>,
           "Fixed lengths of drafts that speculate measures beside the adaptive length.",
           {.placeholder = "K,...",
            .limits = {1, kMaxSpeculativeTokens},
            .default_text = "1,2,4,8 without a drafter, else none"}),
    option("temperatures", kTo<&Settings::bench, &BenchChoice::temperatures>,
           "Temperatures at which speculate draws tokens with a drafter.",
           {.placeholder = "T,...", .limits = {0, 2}, .default_text = "0"}),
    option("prompt-texts", kTo<&Settings::bench, &BenchChoice::prompt_texts>,
           "Prompts of speculate with a drafter: random tokens, texts that repeat themselves, or "
           "beginnings of stories.",
           {.placeholder = "KIND",
            .choices = "random repeating stories",
            .default_text = "repeating with ngram, stories with a draft model"}),
    option("threads", kTo<&Settings::bench, &BenchChoice::threads>,
           "Numbers of threads to measure with.",
           {.aliases = "-t",
            .placeholder = "N,...",
            .limits = {0, 1024},
            .default_text = "0, one per usable core"}),
    option("repetitions", kTo<&Settings::bench, &BenchChoice::repetitions>,
           "Repeat each run up to N times, for at most 10 s, and report the median.",
           {.limits = {1, 1000}}),
    option("roofline", kTo<&Settings::bench, &BenchChoice::roofline>,
           "Also report the machine's limits (read bandwidth, multiply rates) and how decode was "
           "tuned to it."),
    option("plan", kTo<&Settings::bench, &BenchChoice::plan>,
           "Print what would be measured, and stop."),
};

}  // namespace

std::vector<OptionDef> measuring_options() {
  return section(OptionGroup::measuring, set_of({bench}), kMeasuringOptions);
}

}  // namespace paceline
