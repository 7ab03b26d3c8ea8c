// The texts of decisions: an input of messages and calls as one text, contents in parts, JSON.
#pragma once

#include <string>

#include "protocol/field_type.h"
#include "protocol/field_value.h"

namespace paceline {

// OpenAI's: a string, or parts of type input_text, input_json, output_text and refusal.
FieldList decision_part_fields();
inline constexpr FieldType kDecisionPart = object_type(decision_part_fields);
inline constexpr FieldType kDecisionTextKinds[] = {kAnyText,
                                                   array_type(kDecisionPart, 0, kNoMaximum)};
inline constexpr FieldType kDecisionText =
    one_of_type(kDecisionTextKinds, "a string or an array of parts");

FieldList decision_item_fields();
inline constexpr FieldType kDecisionItem = object_type(decision_item_fields);
inline constexpr FieldType kDecisionInputKinds[] = {kAnyText,
                                                    array_type(kDecisionItem, 1, kNoMaximum)};
inline constexpr FieldType kDecisionInput =
    one_of_type(kDecisionInputKinds, "a string or an array of items");

// Parts are joined with line breaks; JSON is written on one line. Throws RequestError for images.
std::string read_decision_text(const FieldValue& value);
// One message of a user is its text alone. Other items begin with a line that says whose they are.
// Throws RequestError for an output whose call isn't there.
std::string read_decision_input(const FieldValue& value);

// TypeSafe's: a string, or an object or array, which is written as JSON.
inline constexpr FieldType kAnyArray = array_type(kAnyValue, 0, kNoMaximum);
inline constexpr FieldType kContentJsonKinds[] = {kAnyText, kAnyObject, kAnyArray};
inline constexpr FieldType kAnyContent =
    one_of_type(kContentJsonKinds, "a string, an object or an array");
inline constexpr FieldType kCriteriaKinds[] = {kAnyObject, kAnyArray};
inline constexpr FieldType kCriteria = one_of_type(kCriteriaKinds, "an object or an array");
// null is an empty text.
std::string read_content_text(const Json& content);

}  // namespace paceline
