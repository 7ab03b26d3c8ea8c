#include "base/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace paceline {
namespace {

template <class T>
void append_number(std::string& out, T value) {
  std::array<char, 40> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

template <class T>
void append_finite(std::string& out, T value) {
  if (std::isfinite(value)) {
    append_number(out, value);
  } else {
    out += "null";
  }
}

void append_escape(std::string& out, char byte) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    default:
      break;
  }
  out += "\\u00";
  out.push_back(kHex[(byte >> 4) & 0xF]);
  out.push_back(kHex[byte & 0xF]);
}

void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    if (byte >= 0x80) {
      const DecodedCodePoint decoded = decode_utf8(text);
      append_utf8(out, decoded.code_point);
      text.remove_prefix(decoded.size);
      continue;
    }
    if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7F) {
      append_escape(out, text[0]);
    } else {
      out.push_back(text[0]);
    }
    text.remove_prefix(1);
  }
  out.push_back('"');
}

}  // namespace

void JsonWriter::before_value() {
  if (needs_comma_) out_.push_back(',');
  needs_comma_ = true;
}

JsonWriter& JsonWriter::begin_object() {
  before_value();
  out_.push_back('{');
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  out_.push_back('}');
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  before_value();
  out_.push_back('[');
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  out_.push_back(']');
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  append_quoted(out_, name);
  out_.push_back(':');
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::boolean(bool value) { return raw(value ? "true" : "false"); }

JsonWriter& JsonWriter::string(std::string_view text) {
  before_value();
  append_quoted(out_, text);
  return *this;
}

JsonWriter& JsonWriter::integer(int64_t value) {
  before_value();
  append_number(out_, value);
  return *this;
}

JsonWriter& JsonWriter::unsigned_integer(uint64_t value) {
  before_value();
  append_number(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  before_value();
  append_finite(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(float value) {
  before_value();
  append_finite(out_, value);
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::tree(const Json& value) {
  if (value.is_object()) {
    begin_object();
    for (const auto& [name, member] : value.as_object("")) key(name).tree(member);
    return end_object();
  }
  if (value.is_array()) {
    begin_array();
    for (const Json& item : value.as_array("")) tree(item);
    return end_array();
  }
  if (value.is_string()) return string(value.as_string(""));
  if (value.is_bool()) return boolean(value.as_bool(""));
  if (value.is_null()) return null();
  if (value.is_integer()) {
    return value.is_negative() ? integer(value.as_int("")) : unsigned_integer(value.as_uint(""));
  }
  const size_t begin = out_.size();
  number(value.as_double(""));
  if (out_.find_first_not_of(",-0123456789", begin) == std::string::npos) out_ += ".0";
  return *this;
}

std::string to_json(const Json& value) {
  std::string out;
  JsonWriter(out).tree(value);
  return out;
}

std::string json_quote(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

}  // namespace paceline
