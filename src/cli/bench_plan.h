// What bench measures, decided before anything is loaded: variants of models, and runs of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/settings.h"

namespace paceline {

enum class BenchTest : uint8_t {
  prefill,   // one prompt, nothing of it in the cache
  decode,    // one sequence, token by token, behind a context
  batch,     // sequences that begin together: prompts, then outputs
  mixed,     // one prompt beside sequences that decode
  classify,  // prompts in one call, of which only some columns of the head are asked for
  cached,    // a prompt of which all but the end is in the prefix cache
  memory,    // what a sequence takes
};

std::string_view bench_test_name(BenchTest test);

// One row of the report.
struct BenchRun {
  BenchTest test = BenchTest::prefill;
  int64_t prompt_tokens = 0;  // of each prompt; of decode: the context it begins behind
  int64_t output_tokens = 0;  // of each sequence
  int64_t sequences = 1;      // together; of mixed: beside the prompt

  bool operator==(const BenchRun&) const = default;
};

// "decode 64 behind 1,024", "batch 8 x 128 + 64".
std::string bench_run_name(const BenchRun& run);
// What a sequence of the run needs room for, in tokens, and how many there are at once.
int64_t context_of(const BenchRun& run);
int64_t sequences_of(const BenchRun& run);

// A model in one format and with one number of threads.
struct BenchVariant {
  std::string shape;   // empty: the model that the options name
  std::string format;  // one of --formats; empty: as the options say
  int64_t threads = 0;
  BenchChoice choice;  // of tests and sizes
};

// Without a model, a shape and tests it is the tour: the bundled model and the small shape.
std::vector<BenchVariant> plan_variants(const BenchChoice& choice, bool names_a_model);

struct BenchRuns {
  std::vector<BenchRun> runs;
  std::vector<std::string> notes;  // what was shortened, in sentences
};

// The runs of one variant. Those that need more than `longest` tokens are shortened to it, and runs
// that become equal are made once.
BenchRuns plan_runs(const BenchChoice& choice, int64_t longest);

}  // namespace paceline
