#include "http/field.h"

#include <algorithm>
#include <utility>

namespace paceline {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

template <class Fields>
auto find_field(Fields& fields, std::string_view name) {
  return std::find_if(fields.begin(), fields.end(), [name](const HttpHeader& field) {
    return same_http_token(field.name, name);
  });
}

}  // namespace

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_control_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

bool same_http_token(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

bool http_list_has(std::string_view list, std::string_view token) {
  while (true) {
    const size_t comma = list.find(',');
    if (same_http_token(trimmed(list.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::vector<HttpHeader> join_http_fields(std::vector<HttpHeader> fields) {
  std::vector<HttpHeader> joined;
  joined.reserve(fields.size());
  for (HttpHeader& field : fields) {
    const auto same = find_field(joined, field.name);
    if (same == joined.end()) {
      joined.push_back(std::move(field));
    } else {
      same->value.append(", ").append(field.value);
    }
  }
  return joined;
}

const std::string* HttpRequest::header(std::string_view name) const {
  const auto field = find_field(headers, name);
  return field == headers.end() ? nullptr : &field->value;
}

}  // namespace paceline
