#include "server/host_check.h"

#include <algorithm>
#include <cctype>

namespace paceline {
namespace {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

bool is_ipv4_loopback(std::string_view host) {
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos;
}

}  // namespace

bool is_loopback_name(std::string_view host) {
  return equals_ignoring_case(host, "localhost") || is_ipv4_loopback(host) || host == "::1";
}

bool is_allowed_host(std::string_view header, std::span<const std::string> allowed) {
  const std::string_view host = without_port(header);
  if (is_loopback_name(host)) return true;
  return std::any_of(allowed.begin(), allowed.end(),
                     [host](const std::string& name) { return equals_ignoring_case(host, name); });
}

}  // namespace paceline
