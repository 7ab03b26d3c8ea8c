#include "cli/trace_style.h"

#include "cli/svg_style.h"

namespace paceline {
namespace {

constexpr std::string_view kTraceLight = R"(.figure { font-size: 22px; font-weight: 600; }
.reason, .step-number { fill: #5d6878; }
.step-number { text-anchor: middle; font-size: 9px; }
.reason { font-size: 10px; }
.label { text-anchor: middle; font-size: 10px; }
.panel-key { fill: #f6f7f9; stroke: #aeb6c2; }
.step { stroke: #e9ecf1; }
.wait { fill: #bcc4cf; }
.prefill { fill: #f2a541; }
.again { fill: url(#paceline-again); }
.again-ground { fill: #fbe0b8; }
.again-stripe { fill: #d9822b; }
.decode { fill: #3373cc; }
.cached { fill: #12a187; }
.held { fill: #7566cf; }
.unshared { fill: none; stroke: #1b2430; stroke-width: 1.5; stroke-dasharray: 4 3; }
.unshared-key { fill: none; stroke: #1b2430; stroke-dasharray: 3 2; }
.preempted { fill: #d6294a; }
.preemption { stroke: #d6294a; stroke-dasharray: 2 2; }
.cross { stroke: #d6294a; stroke-width: 2.5; stroke-linecap: round; }
.cross-halo { stroke: #ffffff; stroke-width: 5; stroke-linecap: round; }
.end { fill: #1b2430; }
.on-prefill { fill: #3d2600; }
.on-again { fill: #3d2600; font-weight: 600; }
.on-cached { fill: #ffffff; }
)";

constexpr std::string_view kTraceDark = R"(.reason, .step-number { fill: #9aa5b4; }
.panel-key { fill: #181d25; stroke: #4a5462; }
.step { stroke: #212832; }
.wait { fill: #4c5665; }
.prefill { fill: #e59a38; }
.again-ground { fill: #5b4423; }
.again-stripe { fill: #e59a38; }
.decode { fill: #5794ec; }
.cached { fill: #22b598; }
.held { fill: #8f81e8; }
.unshared, .unshared-key { stroke: #e6eaf0; }
.preempted { fill: #ff5a76; }
.preemption, .cross { stroke: #ff5a76; }
.cross-halo { stroke: #10141a; }
.end { fill: #e6eaf0; }
.on-prefill { fill: #2a1a00; }
.on-again { fill: #ffffff; }
.on-cached { fill: #06121f; }
)";

constexpr std::string_view kPatterns = R"svg(<defs>
<pattern id="paceline-again" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)">
<rect class="again-ground" width="6" height="6"/><rect class="again-stripe" width="2.5" height="6"/>
</pattern>
</defs>)svg";

}  // namespace

std::string trace_style() { return svg_style(kTraceLight, kTraceDark) + std::string(kPatterns); }

}  // namespace paceline
