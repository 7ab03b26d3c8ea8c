// Plans what bench measures before anything is loaded: variants of models, and the runs of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/settings.h"

namespace paceline {

enum class BenchTest : uint8_t {
  prefill,    // one prompt, none of it in the prefix cache
  decode,     // one sequence, token by token, after a context
  batch,      // sequences that begin together: prompts, then outputs
  mixed,      // one prompt beside decoding sequences
  classify,   // several prompts in one call, with only some columns of the head
  cached,     // a prompt whose beginning is in the prefix cache
  memory,     // the memory of a sequence
  speculate,  // decoding with drafts beside decoding without
};

std::string_view bench_test_name(BenchTest test);

// What drafts in speculate: a replay of recorded answers with errors, or the options' drafter.
enum class BenchDrafter : uint8_t { replay, ngram, model };
enum class BenchPrompts : uint8_t { random, repeating, stories };

// The rest of a speculate run.
struct BenchDrafts {
  BenchDrafter drafter = BenchDrafter::replay;
  BenchPrompts prompts = BenchPrompts::random;
  double acceptance = 0;  // of a replay
  double temperature = 0;
  std::vector<int64_t> lengths;  // fixed ones, beside the adaptive one
  int64_t longest = 8;           // of the adaptive one

  bool operator==(const BenchDrafts&) const = default;
};

// "replay", "random": the enumerators' names.
std::string_view drafter_name(const BenchDrafts& drafts);
std::string_view prompts_name(const BenchDrafts& drafts);

// One row of the report.
struct BenchRun {
  BenchTest test = BenchTest::prefill;
  int64_t prompt_tokens = 0;  // of each prompt; decode: the context before it
  int64_t output_tokens = 0;  // of each sequence
  int64_t sequences = 1;      // at once; mixed: beside the prompt
  BenchDrafts drafts;

  bool operator==(const BenchRun&) const = default;
};

// "decode 64 behind 1,024", "batch 8 x 128 + 64".
std::string bench_run_name(const BenchRun& run);
// The length of a sequence of the run in tokens, and how many run at once.
int64_t context_of(const BenchRun& run);
int64_t sequences_of(const BenchRun& run);

// A model in one format and with one number of threads.
struct BenchVariant {
  std::string shape;   // empty: the model of --model
  std::string format;  // one of --formats; empty: as the other options set it
  int64_t threads = 0;
  BenchChoice choice;  // of tests and sizes
};

// Without a model, a shape and tests, the variants are the bundled model and the small shape.
std::vector<BenchVariant> plan_variants(const BenchChoice& choice, bool names_a_model);

// The sizes and settings given that no test of the variants uses.
std::vector<std::string_view> idle_options(const BenchChoice& asked,
                                           const std::vector<BenchVariant>& variants,
                                           bool has_drafter);

struct BenchRuns {
  std::vector<BenchRun> runs;
  std::vector<std::string> notes;  // a sentence for each shortened run
};

// What a variant's model has for speculate.
struct BenchDrafting {
  BenchDrafter drafter = BenchDrafter::replay;
  bool has_tokenizer = false;
  int64_t longest = 8;  // draft
};

// The runs of one variant, shortened to `longest` tokens; runs that become equal are made once.
BenchRuns plan_runs(const BenchChoice& choice, int64_t longest, const BenchDrafting& drafting = {});

}  // namespace paceline
