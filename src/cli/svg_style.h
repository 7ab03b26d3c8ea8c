// The shared style of all SVG pictures: fonts, pages and panels, light or dark like the reader's
// browser.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// A <style> element with the shared rules, then one picture's own; `dark` overrides `light`.
std::string svg_style(std::string_view light, std::string_view dark);

}  // namespace paceline
