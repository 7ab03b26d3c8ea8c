// Replays a trace's requests one by one and compares the tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/trace_file.h"
#include "paceline/options.h"

namespace paceline {

struct Replay {
  int64_t num_requests = 0;  // that drew tokens and came to their own end
  int64_t num_tokens = 0;
  std::vector<std::string> differences;  // "request 7: token 12 of 64: 81, recorded 1034"
};

// Each request alone, on a model loaded with `options`. A cancelled or failed one is compared as
// far as it came.
Replay replay_trace(const Trace& trace, const LoadOptions& options);

std::string replay_text(const Replay& replay);

}  // namespace paceline
