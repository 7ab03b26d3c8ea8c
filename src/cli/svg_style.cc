#include "cli/svg_style.h"

#include <fmt/format.h>

namespace paceline {
namespace {

constexpr std::string_view kSharedLight = R"(
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
text { font-size: 12px; fill: #1b2430; }
.title { font-size: 22px; font-weight: 600; }
.caption, .note, .axis, .tick { fill: #5d6878; }
.name { font-weight: 600; }
.axis { text-anchor: end; font-size: 11px; }
.tick { text-anchor: middle; font-size: 11px; }
.page { fill: #ffffff; }
.panel { fill: #f6f7f9; }
.grid { stroke: #dfe3e9; }
.edge { stroke: #aeb6c2; }
)";

constexpr std::string_view kSharedDark = R"(
text { fill: #e6eaf0; }
.caption, .note, .axis, .tick { fill: #9aa5b4; }
.page { fill: #10141a; }
.panel { fill: #181d25; }
.grid { stroke: #29313c; }
.edge { stroke: #4a5462; }
)";

}  // namespace

std::string svg_style(std::string_view light, std::string_view dark) {
  return fmt::format("<style>{}{}@media (prefers-color-scheme: dark) {{{}{}}}\n</style>\n",
                     kSharedLight, light, kSharedDark, dark);
}

}  // namespace paceline
