// Reads --sequence-lengths.
#pragma once

#include <string_view>
#include <vector>

#include "paceline/train_options.h"

namespace paceline {

// "256:0.45,512:0.85": lengths and the parts of the run until which they hold, both rising.
// Throws UsageError beginning with `where`.
std::vector<LengthStage> parse_length_stages(std::string_view text, std::string_view where);

}  // namespace paceline
