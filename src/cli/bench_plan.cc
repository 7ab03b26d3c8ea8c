#include "cli/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "cli/trace_totals.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 7> kTestNames = {"prefill",  "decode", "batch", "mixed",
                                                        "classify", "cached", "memory"};

// Tokens of a stream's prompt beside another prompt.
constexpr int64_t kStreamPrompt = 16;

BenchTest test_of(std::string_view name) {
  const auto found = std::find(kTestNames.begin(), kTestNames.end(), name);
  PL_CHECK(found != kTestNames.end(), "a test that --tests offers has no measurement");
  return static_cast<BenchTest>(found - kTestNames.begin());
}

using Sizes = std::vector<int64_t>;

// A test's default sizes.
Sizes usual_prompts(BenchTest test) {
  switch (test) {
    case BenchTest::prefill:
      return {512};
    case BenchTest::decode:
      return {1};
    case BenchTest::batch:
      return {128};
    case BenchTest::mixed:
    case BenchTest::cached:
      return {1000};
    case BenchTest::classify:
      return {20};
    case BenchTest::memory:
      break;
  }
  return {16};
}

Sizes usual_sequences(BenchTest test) {
  switch (test) {
    case BenchTest::batch:
      return {1, 8, 32};
    case BenchTest::classify:
      return {1, 4, 8, 32};
    case BenchTest::memory:
      return {128};
    default:
      return {1};
  }
}

bool has_outputs(BenchTest test) { return test == BenchTest::decode || test == BenchTest::batch; }

bool has_sequences(BenchTest test) {
  return test == BenchTest::batch || test == BenchTest::mixed || test == BenchTest::classify;
}

Sizes prompts_of(BenchTest test, const BenchChoice& choice) {
  const Sizes& asked = test == BenchTest::decode ? choice.contexts : choice.prompt_tokens;
  return asked.empty() || test == BenchTest::memory ? usual_prompts(test) : asked;
}

Sizes sequences_of(BenchTest test, const BenchChoice& choice) {
  const bool asked = has_sequences(test) && !choice.sequences.empty();
  return asked ? choice.sequences : usual_sequences(test);
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

}  // namespace

std::string_view bench_test_name(BenchTest test) { return kTestNames[static_cast<size_t>(test)]; }

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

BenchRuns plan_runs(const BenchChoice& choice, int64_t longest) {
  constexpr int64_t kUsualOutput = 64;
  BenchRuns planned;
  for (const std::string& name : choice.tests) {
    const BenchTest test = test_of(name);
    for (const int64_t prompt_tokens : prompts_of(test, choice)) {
      for (const int64_t sequences : sequences_of(test, choice)) {
        add_run(
            {.test = test,
             .prompt_tokens = prompt_tokens,
             .output_tokens = has_outputs(test) ? choice.output_tokens.value_or(kUsualOutput) : 0,
             .sequences = sequences},
            longest, planned);
      }
    }
  }
  return planned;
}

}  // namespace paceline
