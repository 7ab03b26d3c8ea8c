// The formats of JSON Schema as regular expressions.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/pattern.h"

namespace paceline {

// Strings of the format, in `form`; nothing when the format is unknown: date-time, date, time,
// duration, email, hostname, ipv4, ipv6, uri and uuid are known.
std::optional<RegexId> json_format(RegexSet& regexes, std::string_view name, TextForm form);

}  // namespace paceline
