// The colours and fonts of a drawn trace, light and dark.
#pragma once

#include <string_view>

namespace paceline {

// A style element and the definitions that it refers to. Colours are told apart with every common
// colour vision; no variables, which converters to other formats don't know.
extern const std::string_view kTraceStyle;

}  // namespace paceline
