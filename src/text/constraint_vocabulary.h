// A tokenizer's vocabulary as constraints use it.
#pragma once

#include "grammar/constraint_cache.h"
#include "paceline/tokenizer.h"

namespace paceline {

// `tokenizer` must outlive it. Texts that the vocabulary can't write have no tokens.
ConstraintVocabulary constraint_vocabulary(const Tokenizer& tokenizer);

}  // namespace paceline
