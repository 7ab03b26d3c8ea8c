// Reads an option's value from text (flags, environment) or from JSON (config file, request lines).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_cursor.h"
#include "cli/option.h"

namespace paceline {

// Both throw Error invalid "WHERE: found VALUE, expected ..." naming the range.
// `texts` has one text per repetition; the last one counts if the option isn't repeatable.
OptionValue parse_option_value(const OptionDef& option, std::span<const std::string> texts,
                               std::string_view where);
// JSON: numbers and strings as themselves, lists as arrays (or a single element), logit_bias as an
// object {"id": value}, named numbers as an object {"name": number}.
OptionValue read_option_value(const OptionDef& option, const JsonCursor& value);

// Token ids separated by blanks, commas or line ends, with or without [ ] around them.
std::vector<int32_t> parse_token_ids(std::string_view text, std::string_view where);
// A text, or an array of texts.
std::vector<std::string> read_texts(const JsonCursor& value);
// An array of token ids.
std::vector<int32_t> read_token_ids(const JsonCursor& value);

// "512M", "4G", "1.5G", "65536", with K, M, G, T for powers of 1,024 (KiB, MiB... are the same).
uint64_t parse_bytes(std::string_view text, std::string_view where);

}  // namespace paceline
