// Tests whether a JSON value matches a FieldType.
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

// Whether a key looks like a token id: at most 9 digits.
bool is_token_id_text(std::string_view key);

// Whether the JSON is a boolean, a string, ... as the type requires.
bool is_of_kind(const Json& json, const FieldType& type);
// Whether a value of the right kind is one of the type's words, within its bounds, ... Doesn't look
// into containers, nor at the length of texts.
bool is_in_range(const Json& json, const FieldType& type, uint64_t max_choices);
// Both, for types that need no other check. False may mean that the type needs one.
bool is_plain_match(const Json& json, const FieldType& type);
// Whether the JSON is meant as `type`, a part of a one_of. The first item tells arrays apart.
bool is_like(const Json& json, const FieldType& type);

// "an integer from 1 to 16", as messages say it.
std::string expected_words(const FieldType& type, uint64_t max_choices);

}  // namespace paceline
