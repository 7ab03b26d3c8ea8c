// The formats of JSON Schema as regular expressions.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/pattern.h"

namespace paceline {

// Strings of the format, in `form`; nothing when the format is unknown. Known are date-time, date,
// time, duration, email, hostname, ipv4, ipv6, uri, uri-reference, iri, iri-reference, uuid,
// json-pointer and relative-json-pointer. No text is allowed that isn't of the format; of those
// that are, the year 0000 and leap seconds at offsets other than quarters of an hour are left out.
std::optional<RegexId> json_format(RegexSet& regexes, std::string_view name, TextForm form);

}  // namespace paceline
