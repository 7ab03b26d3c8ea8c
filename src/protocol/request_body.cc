#include "protocol/request_body.h"

#include <fmt/format.h>

#include "base/request_error.h"

namespace paceline {
namespace {

struct BodyCounts {
  size_t members = 0;
  size_t values = 0;
};

// Counts the punctuation between values: exact for valid JSON, an estimate otherwise.
BodyCounts count_body(std::string_view body) {
  BodyCounts counts;
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      i += c == '\\' ? 1 : 0;
    } else if (c == ':') {
      ++counts.members;
    } else if (c == ',' || c == '[' || c == '{') {
      ++counts.values;
    }
  }
  return counts;
}

void refuse_beyond(size_t count, size_t most, std::string_view what) {
  if (count <= most) return;
  throw RequestError("", ErrorReason::invalid_value,
                     fmt::format("the request: {} {}, expected at most {}", count, what, most));
}

}  // namespace

Json parse_request_body(std::string_view body) {
  const BodyCounts counts = count_body(body);
  refuse_beyond(counts.members, kMaxMembers, "members of objects");
  refuse_beyond(counts.values, kMaxValues, "values");
  return parse_json(body, "the request");
}

}  // namespace paceline
