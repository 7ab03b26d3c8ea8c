// FieldType describes the values of a field: requests are checked against it, and JSON Schemas are
// made from it; FieldInfo describes the field for documentation.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/number_range.h"

namespace paceline {

struct FieldInfo;

enum class FieldKind : uint8_t {
  any,
  boolean,
  integer,
  number,
  text,
  array,   // of `item`
  tuple,   // an array of just `parts`
  object,  // of `members`, or of any whose values are `item`
  one_of,  // `parts`
};

// The accepted values of a boolean.
enum class Booleans : uint8_t { both, only_true, only_false };

constexpr uint64_t kNoMaximum = std::numeric_limits<uint64_t>::max();

struct FieldType {
  FieldKind kind = FieldKind::any;
  Booleans booleans = Booleans::both;
  // Bounds of an integer, the bytes of a text, the items of an array, or the members of an object.
  int64_t min = 0;
  uint64_t max = kNoMaximum;
  NumberRange range = {};                        // of a number
  std::span<const std::string_view> words = {};  // a text is one of them
  const FieldType* item = nullptr;               // none: any
  std::span<const FieldType> parts = {};
  std::vector<FieldInfo> (*members)() = nullptr;  // checked by their own reader
  bool keys_are_ids = false;                      // an object's keys are token ids
  bool counts_choices = false;                    // RequestTerms::max_choices bounds it too
  // The API has further values, which aren't supported: they are unsupported_parameter.
  bool is_part_of_api = false;
  std::string_view expected = {};  // the words of messages, where the generic ones are unclear
};

inline constexpr FieldType kAnyValue = {};
inline constexpr FieldType kBoolean = {.kind = FieldKind::boolean};
inline constexpr FieldType kOnlyTrue = {
    .kind = FieldKind::boolean, .booleans = Booleans::only_true, .is_part_of_api = true};
inline constexpr FieldType kOnlyFalse = {
    .kind = FieldKind::boolean, .booleans = Booleans::only_false, .is_part_of_api = true};
inline constexpr FieldType kAnyText = {.kind = FieldKind::text};
inline constexpr FieldType kSomeText = {.kind = FieldKind::text, .min = 1};
inline constexpr FieldType kNoText = {
    .kind = FieldKind::text, .max = 0, .is_part_of_api = true, .expected = "an empty string"};
inline constexpr FieldType kAnyList = {.kind = FieldKind::array};
inline constexpr FieldType kNoItems = {
    .kind = FieldKind::array, .max = 0, .is_part_of_api = true, .expected = "an empty array"};
inline constexpr FieldType kAnyObject = {.kind = FieldKind::object};
inline constexpr FieldType kAnyNumber = {
    .kind = FieldKind::number, .range = {.min = -1e30, .max = 1e30}, .expected = "a number"};
// For unsupported features: the only value allowed is the one that switches the feature off.
inline constexpr FieldType kOnlyZero = {.kind = FieldKind::number,
                                        .range = {.min = 0, .max = 0},
                                        .is_part_of_api = true,
                                        .expected = "0"};
inline constexpr FieldType kOnlyOne = {.kind = FieldKind::number,
                                       .range = {.min = 1, .max = 1},
                                       .is_part_of_api = true,
                                       .expected = "1"};

constexpr FieldType integer_type(int64_t min, uint64_t max) {
  return {.kind = FieldKind::integer, .min = min, .max = max};
}
// For an option, or another integer with a range of its own.
constexpr FieldType integer_type(const NumberRange& range) {
  return integer_type(static_cast<int64_t>(range.min), static_cast<uint64_t>(range.max));
}
constexpr FieldType number_type(NumberRange range) {
  return {.kind = FieldKind::number, .range = range};
}
constexpr FieldType text_type(int64_t min_bytes, uint64_t max_bytes) {
  return {.kind = FieldKind::text, .min = min_bytes, .max = max_bytes};
}
constexpr FieldType word_type(std::span<const std::string_view> words) {
  return {.kind = FieldKind::text, .words = words};
}
constexpr FieldType only_words_type(std::span<const std::string_view> words) {
  return {.kind = FieldKind::text, .words = words, .is_part_of_api = true};
}
constexpr FieldType array_type(const FieldType& item, int64_t min_items, uint64_t max_items) {
  return {.kind = FieldKind::array, .min = min_items, .max = max_items, .item = &item};
}
constexpr FieldType object_type(std::vector<FieldInfo> (*members)()) {
  return {.kind = FieldKind::object, .members = members};
}
constexpr FieldType one_of_type(std::span<const FieldType> parts, std::string_view expected) {
  return {.kind = FieldKind::one_of, .parts = parts, .expected = expected};
}
template <const FieldType&... parts>
inline constexpr FieldType kPartsOf[] = {parts...};
template <const FieldType&... parts>
constexpr FieldType one_of_type(std::string_view expected) {
  return one_of_type(kPartsOf<parts...>, expected);
}
// A string, or an array of items, whose number only the size of the body bounds.
template <const FieldType& item, int64_t min_items = 0>
inline constexpr FieldType kTextOrItems[] = {kAnyText, array_type(item, min_items, kNoMaximum)};
template <const FieldType& item, int64_t min_items = 0>
constexpr FieldType text_or_array_type(std::string_view expected) {
  return one_of_type(kTextOrItems<item, min_items>, expected);
}

inline constexpr std::string_view kFunctionWords[] = {"function"};
inline constexpr FieldType kOnlyFunction = only_words_type(kFunctionWords);
inline constexpr std::string_view kTextWords[] = {"text"};
inline constexpr FieldType kOnlyTextWord = only_words_type(kTextWords);

// As many as any context holds. The engine checks whether ids are in the vocabulary.
constexpr uint64_t kMaxListedTokens = 1 << 19;
inline constexpr FieldType kTokenId = {.kind = FieldKind::integer,
                                       .max = std::numeric_limits<int32_t>::max(),
                                       .expected = "a token id, an integer from 0 on"};
inline constexpr FieldType kTokenIds = array_type(kTokenId, 1, kMaxListedTokens);

enum class FieldUse : uint8_t {
  implemented,
  accepted,  // can't change the answer: checked, then ignored
  refused,   // part of the API, not offered here
};

// monostate: leaving the field out differs from any value.
using FieldDefault = std::variant<std::monostate, bool, int64_t, double, std::string_view>;

struct FieldNotes {
  FieldDefault by_default = {};
  std::string_view when_unset = {};  // what leaving it out means, where no value says the same
  std::string_view alias_of = {};    // the field that it is another name of
};
inline constexpr FieldNotes kOff = {.by_default = false};
inline constexpr FieldNotes kOn = {.by_default = true};

struct FieldInfo : FieldNotes {
  std::string_view name;
  FieldType type = kAnyValue;
  std::string_view help = {};  // one sentence; for a refused field an alternative, or nothing
  FieldUse use = FieldUse::implemented;
  bool is_required = false;
};

using FieldList = std::vector<FieldInfo>;

}  // namespace paceline
