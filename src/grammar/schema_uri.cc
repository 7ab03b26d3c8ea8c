#include "grammar/schema_uri.h"

#include <vector>

namespace paceline {
namespace {

// Each with its delimiter; `authority` begins with "//".
struct UriParts {
  std::string_view scheme, authority, path, query, fragment;
};

UriParts split_uri(std::string_view uri) {
  UriParts parts;
  const size_t fragment = std::min(uri.find('#'), uri.size());
  parts.fragment = uri.substr(fragment);
  uri = uri.substr(0, fragment);
  const size_t query = std::min(uri.find('?'), uri.size());
  parts.query = uri.substr(query);
  uri = uri.substr(0, query);
  const size_t colon = uri.find(':');
  if (colon != uri.npos && colon > 0 && uri.find('/') > colon) {
    parts.scheme = uri.substr(0, colon + 1);
    uri.remove_prefix(colon + 1);
  }
  if (uri.substr(0, 2) == "//") {
    const size_t path = std::min(uri.find('/', 2), uri.size());
    parts.authority = uri.substr(0, path);
    uri.remove_prefix(path);
  }
  parts.path = uri;
  return parts;
}

// RFC 3986, 5.2.4.
std::string without_dot_segments(std::string_view path) {
  std::vector<std::string_view> kept;
  const bool is_rooted = path.substr(0, 1) == "/";
  if (is_rooted) path.remove_prefix(1);
  bool ends_in_folder = false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    ends_in_folder = segment == "." || segment == "..";
    if (segment == ".." && !kept.empty()) kept.pop_back();
    if (!ends_in_folder) kept.push_back(segment);
    begin = end + 1;
  }
  if (ends_in_folder) kept.push_back("");
  std::string joined;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i > 0 || is_rooted) joined += '/';
    joined += kept[i];
  }
  return joined;
}

std::string merged_path(const UriParts& base, std::string_view path) {
  if (path.substr(0, 1) == "/") return without_dot_segments(path);
  if (!base.authority.empty() && base.path.empty()) {
    return without_dot_segments("/" + std::string(path));
  }
  const size_t slash = base.path.rfind('/');
  const std::string_view folder =
      slash == base.path.npos ? std::string_view() : base.path.substr(0, slash + 1);
  return without_dot_segments(std::string(folder) + std::string(path));
}

int hex_digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_digit_value(text[i + 1]);
      const int low = hex_digit_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        decoded += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    decoded += text[i];
  }
  return decoded;
}

}  // namespace

SchemaReference resolve_schema_reference(std::string_view base, std::string_view reference) {
  const UriParts from = split_uri(base);
  const UriParts to = split_uri(reference);
  const auto joined = [](std::string_view scheme, std::string_view authority, std::string_view path,
                         std::string_view query) {
    return std::string(scheme).append(authority).append(path).append(query);
  };
  SchemaReference found;
  if (!to.fragment.empty()) found.fragment = percent_decoded(to.fragment.substr(1));
  if (!to.scheme.empty()) {
    found.resource = joined(to.scheme, to.authority, without_dot_segments(to.path), to.query);
  } else if (!to.authority.empty()) {
    found.resource = joined(from.scheme, to.authority, without_dot_segments(to.path), to.query);
  } else if (to.path.empty()) {
    found.resource =
        joined(from.scheme, from.authority, from.path, to.query.empty() ? from.query : to.query);
  } else {
    found.resource = joined(from.scheme, from.authority, merged_path(from, to.path), to.query);
  }
  return found;
}

}  // namespace paceline
