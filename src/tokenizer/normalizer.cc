#include "tokenizer/normalizer.h"

#include <utility>

namespace paceline {

NormalizerSequence::NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> steps)
    : steps_(std::move(steps)) {}

std::string_view NormalizerSequence::normalize(std::string_view text, TextStore& store) const {
  for (const auto& step : steps_) text = step->normalize(text, store);
  return text;
}

}  // namespace paceline
