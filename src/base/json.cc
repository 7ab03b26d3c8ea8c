#include "base/json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

#include "base/error.h"
#include "base/json_fault.h"

namespace paceline {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kLinearDuplicateScan = 16;  // larger objects are checked with a set

[[noreturn]] void mismatch(std::string_view where, std::string_view expected,
                           std::string_view found) {
  throw Error(ErrorCode::invalid, fmt::format("{}: expected {}, found {}", where, expected, found));
}

void check_unique(const Json::Object& object, std::string_view where) {
  auto fail = [&](std::string_view key) {
    throw Error(ErrorCode::invalid, fmt::format("{}: the key \"{}\" stands twice", where, key));
  };
  if (object.size() <= kLinearDuplicateScan) {
    for (size_t i = 1; i < object.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (object[i].first == object[j].first) fail(object[i].first);
      }
    }
    return;
  }
  std::unordered_set<std::string_view> seen;
  for (const auto& [key, value] : object) {
    if (!seen.insert(key).second) fail(key);
  }
}

bool is_integer_beyond_64_bits(std::string_view number) {
  const char* const end = number.data() + number.size();
  int64_t as_signed = 0;
  uint64_t as_unsigned = 0;
  const auto overflows = [end](std::from_chars_result result) {
    return result.ptr == end && result.ec == std::errc::result_out_of_range;
  };
  // from_chars accepts no sign for an unsigned type, so negative numbers fail at their start.
  return overflows(std::from_chars(number.data(), end, as_signed)) &&
         std::from_chars(number.data(), end, as_unsigned).ec != std::errc();
}

// simdjson refuses integers beyond 64 bits, which real files have ("model_max_length":
// 1000000000000000019884624838656); "e0" behind them makes them doubles.
std::string with_huge_integers_as_doubles(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (in_string) {
      if (text[i] == '\\' && end < text.size()) ++end;
      in_string = text[i] != '"';
      out += text.substr(i, end - i);
    } else {
      end = std::max(end, std::min(text.find_first_not_of("+-.0123456789Ee", i), text.size()));
      const std::string_view part = text.substr(i, end - i);
      in_string = part == "\"";
      out += part;
      if (is_integer_beyond_64_bits(part)) out += "e0";
    }
    i = end;
  }
  return out;
}

Json convert(simdjson::dom::element element, std::string_view where) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::ARRAY: {
      Json::Array array;
      for (auto child : simdjson::dom::array(element)) array.push_back(convert(child, where));
      return Json(std::move(array));
    }
    case element_type::OBJECT: {
      Json::Object object;
      for (auto field : simdjson::dom::object(element)) {
        object.emplace_back(std::string(field.key), convert(field.value, where));
      }
      check_unique(object, where);
      return Json(std::move(object));
    }
    case element_type::INT64:
      return Json(int64_t(element));
    case element_type::UINT64:
      return Json(uint64_t(element));
    case element_type::DOUBLE:
      return Json(double(element));
    case element_type::STRING:
      return Json(std::string(std::string_view(element)));
    case element_type::BOOL:
      return Json(bool(element));
    case element_type::NULL_VALUE:
      return Json();
  }
  return Json();
}

}  // namespace

std::string_view Json::kind() const {
  static constexpr std::string_view kNames[] = {"null",     "a boolean", "an integer", "an integer",
                                                "a number", "a string",  "an array",   "an object"};
  return kNames[value_.index()];
}

bool Json::as_bool(std::string_view where) const {
  if (const auto* value = std::get_if<bool>(&value_)) return *value;
  mismatch(where, "a boolean", kind());
}

int64_t Json::as_int(std::string_view where) const {
  if (const auto* value = std::get_if<int64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<double>(&value_)) {
    constexpr double kExactLimit = 9007199254740992.0;  // 2^53
    if (std::trunc(*value) == *value && std::abs(*value) <= kExactLimit) {
      return static_cast<int64_t>(*value);
    }
  }
  mismatch(where, "an integer",
           std::holds_alternative<uint64_t>(value_) ? "one beyond 64 bits" : kind());
}

uint64_t Json::as_uint(std::string_view where) const {
  if (const auto* value = std::get_if<uint64_t>(&value_)) return *value;
  const int64_t value = as_int(where);
  if (value < 0) mismatch(where, "an integer from 0 on", "a negative one");
  return static_cast<uint64_t>(value);
}

bool Json::is_negative() const { return is_number() && as_double("") < 0; }

double Json::as_double(std::string_view where) const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<uint64_t>(&value_)) return static_cast<double>(*value);
  mismatch(where, "a number", kind());
}

const std::string& Json::as_string(std::string_view where) const {
  if (const auto* value = std::get_if<std::string>(&value_)) return *value;
  mismatch(where, "a string", kind());
}

const Json::Array& Json::as_array(std::string_view where) const {
  if (const auto* value = std::get_if<Array>(&value_)) return *value;
  mismatch(where, "an array", kind());
}

const Json::Object& Json::as_object(std::string_view where) const {
  if (const auto* value = std::get_if<Object>(&value_)) return *value;
  mismatch(where, "an object", kind());
}

const Json* Json::find(std::string_view key) const {
  const auto* object = std::get_if<Object>(&value_);
  if (object == nullptr) return nullptr;
  for (const auto& [name, value] : *object) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json* Json::find_value(std::string_view key) const {
  const Json* value = find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Json parse_json(std::string_view text, std::string_view where) {
  simdjson::dom::parser parser;
  // allocate() grows the buffers with the text; the depth is what bounds the recursion of
  // convert().
  const auto allocated = parser.allocate(text.size() + 1, kMaxDepth);
  if (allocated != simdjson::SUCCESS) {
    throw Error(ErrorCode::exhausted,
                fmt::format("{}: no memory to parse {} bytes of JSON", where, text.size()));
  }
  simdjson::dom::element root;
  auto parsed = parser.parse(simdjson::padded_string(text)).get(root);
  if (parsed == simdjson::NUMBER_ERROR) {
    parsed = parser.parse(simdjson::padded_string(with_huge_integers_as_doubles(text))).get(root);
  }
  if (parsed != simdjson::SUCCESS) {
    const auto fault = find_json_fault(text, kMaxDepth);
    throw Error(ErrorCode::invalid,
                fmt::format("{}: not valid JSON: {}", where,
                            fault ? fault->text() : simdjson::error_message(parsed)));
  }
  return convert(root, where);
}

}  // namespace paceline
