// Whether JSON is of a FieldType, one value at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "protocol/field_type.h"

namespace paceline {

// An integer, or a double that is one exactly.
struct WholeNumber {
  bool is_negative = false;
  uint64_t bits = 0;  // two's complement

  bool is_within(int64_t min, uint64_t max) const;
};
std::optional<WholeNumber> whole_number(const Json& json);

// What a key that names a token id looks like: at most 9 digits.
bool is_token_id_text(std::string_view key);

// Whether the JSON is a boolean, a string, ... as the type says.
bool is_of_kind(const Json& json, const FieldType& type);
// Whether what is of its kind is one of its words, within its bounds, ...; of containers and the
// length of texts nothing is said.
bool is_in_range(const Json& json, const FieldType& type, uint64_t max_choices);
// Both, for types that need no further look; false: perhaps not.
bool is_plain_match(const Json& json, const FieldType& type);
// Which part of a one_of the JSON means to be: arrays are told apart by their first items.
bool is_like(const Json& json, const FieldType& type);

// "an integer from 1 to 16", as messages say it.
std::string expected_words(const FieldType& type, uint64_t max_choices);

}  // namespace paceline
