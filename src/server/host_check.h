// Checks the Host header, which keeps other sites' pages from using a server on loopback.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace paceline {

// "127.0.0.1", "::1", "localhost" and the like.
bool is_loopback_name(std::string_view host);

// Whether a Host header ("localhost:8080", "[::1]:8080") names the loopback, or one of `allowed`.
// A name that an attacker's DNS points at 127.0.0.1 (rebinding) does not.
bool is_allowed_host(std::string_view header, std::span<const std::string> allowed);

}  // namespace paceline
