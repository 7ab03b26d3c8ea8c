// Whether a Grammar's language has a text, by trying everything: slow, and obviously right.
#pragma once

#include <string_view>

#include "grammar/grammar.h"

namespace paceline {

bool naively_accepts(Grammar& grammar, std::string_view text);

}  // namespace paceline
