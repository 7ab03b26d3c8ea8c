#include "cli/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "cli/figures.h"

namespace paceline {
namespace {

using Sizes = std::vector<int64_t>;

// A test, and its sizes where the options give none.
struct TestDefinition {
  std::string_view name;
  Sizes prompts;
  int64_t output_tokens = 0;  // 0: it has no output
  Sizes sequences = {1};
  bool takes_sequences = false;  // those of --sequences
};

// In the order of BenchTest.
const std::array<TestDefinition, 8>& test_definitions() {
  static const std::array<TestDefinition, 8> definitions = {{
      {.name = "prefill", .prompts = {512}},
      {.name = "decode", .prompts = {1}, .output_tokens = 64},
      {.name = "batch",
       .prompts = {128},
       .output_tokens = 64,
       .sequences = {1, 8, 32},
       .takes_sequences = true},
      {.name = "mixed", .prompts = {1000}, .takes_sequences = true},
      {.name = "classify", .prompts = {20}, .sequences = {1, 4, 8, 32}, .takes_sequences = true},
      {.name = "cached", .prompts = {1000}},
      {.name = "memory", .prompts = {16}, .sequences = {128}},
      {.name = "speculate",
       .prompts = {128},
       .output_tokens = 128,
       .sequences = {1, 4, 16},
       .takes_sequences = true},
  }};
  return definitions;
}

const TestDefinition& definition_of(BenchTest test) {
  return test_definitions()[static_cast<size_t>(test)];
}

constexpr std::array<std::string_view, 3> kPromptNames = {"random", "repeating", "stories"};
constexpr std::array<std::string_view, 3> kDrafterNames = {"replay", "ngram", "model"};

// Tokens of a stream's prompt beside another prompt.
constexpr int64_t kStreamPrompt = 16;

BenchTest test_of(std::string_view name) {
  const auto& all = test_definitions();
  const auto found = std::ranges::find(all, name, &TestDefinition::name);
  PL_CHECK(found != all.end(), "a test that --tests offers has no measurement");
  return static_cast<BenchTest>(found - all.begin());
}

bool has_outputs(BenchTest test) { return definition_of(test).output_tokens > 0; }
bool has_sequences(BenchTest test) { return definition_of(test).takes_sequences; }

Sizes prompts_of(BenchTest test, const BenchChoice& choice) {
  const Sizes& asked = test == BenchTest::decode ? choice.contexts : choice.prompt_tokens;
  return asked.empty() || test == BenchTest::memory ? definition_of(test).prompts : asked;
}

Sizes sequences_of(BenchTest test, const BenchChoice& choice) {
  const bool asked = has_sequences(test) && !choice.sequences.empty();
  return asked ? choice.sequences : definition_of(test).sequences;
}

// The run with a prompt and an output that fit, each of one token at least.
BenchRun shortened(BenchRun run, int64_t longest) {
  const auto excess = [&] { return std::max<int64_t>(context_of(run) - longest, 0); };
  run.prompt_tokens = std::max<int64_t>(run.prompt_tokens - excess(), 1);
  if (has_outputs(run.test)) run.output_tokens = std::max<int64_t>(run.output_tokens - excess(), 1);
  return run;
}

void add_run(const BenchRun& run, int64_t longest, BenchRuns& planned) {
  const BenchRun fitting = shortened(run, longest);
  if (fitting != run) {
    planned.notes.push_back(fmt::format("{} is measured as {}: the context holds {} tokens",
                                        bench_run_name(run), bench_run_name(fitting),
                                        grouped_digits(longest)));
  }
  const auto& runs = planned.runs;
  if (std::find(runs.begin(), runs.end(), fitting) == runs.end()) planned.runs.push_back(fitting);
}

BenchPrompts prompts_of(const BenchChoice& choice, const BenchDrafting& drafting) {
  if (drafting.drafter == BenchDrafter::replay || !drafting.has_tokenizer)
    return BenchPrompts::random;
  const auto found = std::find(kPromptNames.begin(), kPromptNames.end(), choice.prompt_texts);
  if (found != kPromptNames.end()) return static_cast<BenchPrompts>(found - kPromptNames.begin());
  return drafting.drafter == BenchDrafter::ngram ? BenchPrompts::repeating : BenchPrompts::stories;
}

// The drafts of each speculate run of one size; one empty element for another test.
std::vector<BenchDrafts> drafts_of(BenchTest test, const BenchChoice& choice,
                                   const BenchDrafting& drafting) {
  if (test != BenchTest::speculate) return {{}};
  const bool replays = drafting.drafter == BenchDrafter::replay;
  BenchDrafts drafts{.drafter = drafting.drafter,
                     .prompts = prompts_of(choice, drafting),
                     .lengths = choice.draft_lengths,
                     .longest = drafting.longest};
  if (drafts.lengths.empty() && replays) drafts.lengths = {1, 2, 4, 8};
  std::vector<double> values = replays ? choice.acceptance : choice.temperatures;
  if (values.empty())
    values = replays ? std::vector<double>{0.3, 0.5, 0.7, 0.8, 0.9, 1.0} : std::vector<double>{0.0};
  std::vector<BenchDrafts> all;
  for (const double value : values) {
    all.push_back(drafts);
    (replays ? all.back().acceptance : all.back().temperature) = value;
  }
  return all;
}

// Fills in unset choices from `usual`.
BenchChoice filled(BenchChoice asked, const BenchChoice& usual) {
  const auto fill = [](auto& list, const auto& from) {
    if (list.empty()) list = from;
  };
  fill(asked.tests, usual.tests);
  fill(asked.prompt_tokens, usual.prompt_tokens);
  fill(asked.contexts, usual.contexts);
  fill(asked.formats, usual.formats);
  if (!asked.output_tokens) asked.output_tokens = usual.output_tokens;
  return asked;
}

void add_variants(const std::string& shape, const BenchChoice& choice,
                  std::vector<BenchVariant>& variants) {
  const Sizes threads = choice.threads.empty() ? Sizes{0} : choice.threads;
  const auto formats = choice.formats.empty() ? std::vector<std::string>{""} : choice.formats;
  for (const std::string& format : formats) {
    for (const int64_t count : threads) {
      variants.push_back({.shape = shape, .format = format, .threads = count, .choice = choice});
    }
  }
}

std::string drafts_name(const BenchDrafts& drafts) {
  if (drafts.drafter == BenchDrafter::replay) return fmt::format("at {}", drafts.acceptance);
  return fmt::format("{} {} at T {}", drafter_name(drafts), prompts_name(drafts),
                     drafts.temperature);
}

}  // namespace

std::string_view drafter_name(const BenchDrafts& drafts) {
  return kDrafterNames[static_cast<size_t>(drafts.drafter)];
}

std::string_view prompts_name(const BenchDrafts& drafts) {
  return kPromptNames[static_cast<size_t>(drafts.prompts)];
}

std::string_view bench_test_name(BenchTest test) { return definition_of(test).name; }

std::string bench_run_name(const BenchRun& run) {
  const std::string_view name = bench_test_name(run.test);
  const std::string prompt = grouped_digits(run.prompt_tokens);
  switch (run.test) {
    case BenchTest::decode:
      return fmt::format("{} {} behind {}", name, grouped_digits(run.output_tokens), prompt);
    case BenchTest::batch:
      return fmt::format("{} {} x {} + {}", name, run.sequences, prompt,
                         grouped_digits(run.output_tokens));
    case BenchTest::mixed:
      return fmt::format("{} {} beside {}", name, prompt, run.sequences);
    case BenchTest::classify:
      return fmt::format("{} {} x {}", name, run.sequences, prompt);
    case BenchTest::memory:
      return fmt::format("{} of {}", name, run.sequences);
    case BenchTest::speculate:
      return fmt::format("{} {} x {} + {} {}", name, run.sequences, prompt,
                         grouped_digits(run.output_tokens), drafts_name(run.drafts));
    default:
      return fmt::format("{} {}", name, prompt);
  }
}

int64_t context_of(const BenchRun& run) {
  // Prefill draws the first token of an output, which decode doesn't count.
  if (run.test == BenchTest::decode) return run.prompt_tokens + run.output_tokens + 1;
  if (run.test == BenchTest::mixed) return kStreamPrompt + run.prompt_tokens;
  return run.prompt_tokens + std::max<int64_t>(run.output_tokens, 1);
}

int64_t sequences_of(const BenchRun& run) {
  return run.test == BenchTest::mixed ? run.sequences + 1 : run.sequences;
}

std::vector<BenchVariant> plan_variants(const BenchChoice& choice, bool names_a_model) {
  std::vector<BenchVariant> variants;
  const bool is_tour = !names_a_model && choice.shape.empty() && choice.tests.empty();
  if (!is_tour) {
    const BenchChoice usual{.tests = {"prefill", "decode"}};
    add_variants(choice.shape, filled(choice, usual), variants);
    return variants;
  }
  const BenchChoice of_model{.tests = {"prefill", "decode", "batch", "mixed", "classify"},
                             .contexts = {1, 900}};
  const BenchChoice of_shape{
      .tests = {"prefill", "decode"}, .output_tokens = 32, .formats = {"bf16", "q8", "q4"}};
  add_variants("", filled(choice, of_model), variants);
  add_variants("small", filled(choice, of_shape), variants);
  return variants;
}

std::vector<std::string_view> idle_options(const BenchChoice& asked,
                                           const std::vector<BenchVariant>& variants,
                                           bool has_drafter) {
  const auto any_test = [&](auto&& uses) {
    return std::any_of(variants.begin(), variants.end(), [&](const BenchVariant& variant) {
      const auto& names = variant.choice.tests;
      return std::any_of(names.begin(), names.end(),
                         [&](const std::string& name) { return uses(test_of(name)); });
    });
  };
  const auto is = [](BenchTest wanted) {
    return [wanted](BenchTest test) { return test == wanted; };
  };
  const bool speculates = any_test(is(BenchTest::speculate));
  const auto has_prompts = [](BenchTest test) {
    return test != BenchTest::decode && test != BenchTest::memory;
  };
  struct Use {
    std::string_view option;
    bool is_given;
    bool has_effect;
  };
  const Use uses[] = {{"--prompt-tokens", !asked.prompt_tokens.empty(), any_test(has_prompts)},
                      {"--contexts", !asked.contexts.empty(), any_test(is(BenchTest::decode))},
                      {"--sequences", !asked.sequences.empty(), any_test(has_sequences)},
                      {"--output-tokens", asked.output_tokens.has_value(), any_test(has_outputs)},
                      {"--acceptance", !asked.acceptance.empty(), speculates && !has_drafter},
                      {"--draft-lengths", !asked.draft_lengths.empty(), speculates},
                      {"--temperatures", !asked.temperatures.empty(), speculates && has_drafter},
                      {"--prompt-texts", !asked.prompt_texts.empty(), speculates && has_drafter}};
  std::vector<std::string_view> idle;
  for (const Use& use : uses) {
    if (use.is_given && !use.has_effect) idle.push_back(use.option);
  }
  return idle;
}

BenchRuns plan_runs(const BenchChoice& choice, int64_t longest, const BenchDrafting& drafting) {
  BenchRuns planned;
  for (const std::string& name : choice.tests) {
    const BenchTest test = test_of(name);
    const int64_t output_tokens =
        has_outputs(test) ? choice.output_tokens.value_or(definition_of(test).output_tokens) : 0;
    for (const int64_t prompt_tokens : prompts_of(test, choice)) {
      for (const int64_t sequences : sequences_of(test, choice)) {
        for (const BenchDrafts& drafts : drafts_of(test, choice, drafting)) {
          add_run({.test = test,
                   .prompt_tokens = prompt_tokens,
                   .output_tokens = output_tokens,
                   .sequences = sequences,
                   .drafts = drafts},
                  longest, planned);
        }
      }
    }
  }
  return planned;
}

}  // namespace paceline
