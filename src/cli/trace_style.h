// How a drawn trace looks.
#pragma once

#include <string>

namespace paceline {

// Style and patterns, as markup. Colours are told apart with every common colour vision; no
// variables, which converters to other formats don't know.
std::string trace_style();

}  // namespace paceline
