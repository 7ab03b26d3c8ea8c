// SequenceLabels are the labels of a model whose head classifies whole texts, and their scores.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/request.h"
#include "paceline/tokenizer.h"

namespace paceline {

struct SequenceLabels {
  // How logits become scores, as transformers' pipeline and vLLM do.
  enum class Scoring : uint8_t {
    softmax,  // several labels, of which one is right
    sigmoid,  // one label, or several that may be right together
    none,     // a regression: the logits themselves
  };

  std::vector<std::string> names;
  Scoring scoring = Scoring::softmax;
  Pooling pooling = Pooling::last;  // whose state the head reads
  // Of pairs: whether a score is the logit itself, and why pairs can't be scored; empty: they can.
  bool pairs_are_logits = false;
  std::string pair_problem = {};
  std::optional<PairLimit> pair_limit = {};  // at which they are cut; nothing: they aren't

  // Of the head's logits, one for each label.
  std::vector<float> scores(std::span<const float> logits) const;
};

}  // namespace paceline
