// RequestTerms are a server's own limits of requests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace paceline {

struct RequestTerms {
  uint64_t max_choices = 128;  // the greatest n
  // Prompts have what clients count in them (protocol/client_counters.h).
  bool keep_client_counters = false;
  // Called with the path of each unknown field, which is then ignored; none: unknown fields are
  // refused.
  std::function<void(const std::string& path)> on_unknown_field = {};
};

}  // namespace paceline
