// RandomCase is a model, an engine for it and some requests, all drawn from one seed.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "paceline/decisions.h"
#include "paceline/options.h"

namespace paceline::testing {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  // True once in `times`.
  bool one_in(int64_t times) { return below(times) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int64_t>(choices.size()))];
  }

 private:
  std::mt19937_64 random_;
};

// Everything beside the request that may change a bit of an answer.
struct Subject {
  Isa isa = Isa::baseline;
  LoadOptions load;  // defaults, except the model, its types and windows
  bool has_text = false;
  bool scores_pairs = false;
  bool generates = true;

  std::string name() const;
};

struct RandomRequest {
  enum class Kind : uint8_t {
    generate,
    classify,
    score,
    embed,
    pairs,
    decide
  } kind = Kind::generate;
  Prompt prompt;
  GenerateOptions options;  // of the draw, when it is a classification
  int32_t n = 1;
  std::vector<std::string> labels;
  bool want_token_id = true;
  bool with_logits = false;
  int32_t num_top_logprobs = 0;             // of a score
  std::vector<TextPair> pairs;              // to score
  std::vector<DecisionQuestion> questions;  // about the prompt
  bool is_calibrated = false;               // these, by a content-free input
  bool is_cancelled = false;                // at some moment

  std::string text() const;
};

struct RandomCase {
  Subject subject;
  LoadOptions engine;   // the subject's options with a way of running it; memory isn't set
  double contexts = 1;  // size of the cache in contexts of the longest sequence
  bool on_thread = false;
  std::vector<RandomRequest> requests;

  std::string text() const;
};

// The seed selects the instruction set in turn.
RandomCase draw_case(uint64_t seed, const std::vector<Isa>& isas);
// The same on a model of another folder of tests/goldens: hybrids, whose layers have states, or
// latents, with latent attention, or mixed, whose layers differ.
RandomCase draw_case_of(const char* folder, uint64_t seed, const std::vector<Isa>& isas);

}  // namespace paceline::testing
