#include "tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

namespace paceline {

NormalizerSequence::NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps)
    : steps_(std::move(steps)) {}

std::string_view NormalizerSequence::normalize(std::string_view text, TextStore& store) const {
  for (const auto& step : steps_) text = step->normalize(text, store);
  return text;
}

bool NormalizerSequence::lowers_case() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const auto& step) { return step->lowers_case(); });
}

}  // namespace paceline
