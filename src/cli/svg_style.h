// The style that all our pictures share: fonts, pages and panels, light or dark as the reader has
// it.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// A <style> element with the rules of one picture behind those of all; `dark` replaces what
// differs.
std::string svg_style(std::string_view light, std::string_view dark);

}  // namespace paceline
