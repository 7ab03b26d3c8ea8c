#include "http/target.h"

#include <algorithm>

#include "base/utf8.h"
#include "http/field.h"
#include "http/refusal.h"

namespace paceline {
namespace {

// How long "http://" is, 0 for a target without it.
size_t scheme_size(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  constexpr std::string_view kSecureScheme = "https://";
  if (same_http_token(target.substr(0, kScheme.size()), kScheme)) return kScheme.size();
  if (same_http_token(target.substr(0, kSecureScheme.size()), kSecureScheme)) {
    return kSecureScheme.size();
  }
  return 0;
}

}  // namespace

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      throw HttpRefusal(400, "the path has a % that isn't followed by two hexadecimal digits");
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

HttpTarget parse_http_target(std::string_view target) {
  const auto is_printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!std::all_of(target.begin(), target.end(), is_printable)) {
    throw HttpRefusal(400, "the request target holds a character that must be percent-encoded");
  }
  if (target == "*") return {.path = "*", .query = ""};
  const size_t scheme = scheme_size(target);
  const std::string_view behind = target.substr(scheme);
  const size_t size = scheme == 0 ? 0 : std::min(behind.find_first_of("/?"), behind.size());
  const std::string_view authority = behind.substr(0, size);
  if (scheme > 0 && (authority.empty() || authority.find('@') != std::string_view::npos)) {
    throw HttpRefusal(400, "the request target must name a host, and no user");
  }
  const std::string_view rest = behind.substr(size);
  const size_t question = rest.find('?');
  const std::string_view path = rest.substr(0, question);
  if (!path.starts_with('/') && (scheme == 0 || !path.empty())) {
    throw HttpRefusal(400, "the request target must begin with /");
  }
  if (target.find('#') != std::string_view::npos) {
    throw HttpRefusal(400, "the request target has a fragment (#), which is never sent");
  }
  HttpTarget result{.path = path.empty() ? "/" : percent_decoded(path),
                    .query = "",
                    .authority = std::string(authority)};
  if (question != std::string_view::npos) result.query = rest.substr(question + 1);
  if (!is_valid_utf8(result.path)) throw HttpRefusal(400, "the path isn't UTF-8");
  if (std::any_of(result.path.begin(), result.path.end(), is_control_character)) {
    throw HttpRefusal(400, "the path holds a control character");
  }
  return result;
}

}  // namespace paceline
