#include "weights/quoted_name.h"

#include "base/json_writer.h"

namespace paceline {

std::string quoted_name(std::string_view name) {
  constexpr size_t kMaxShownBytes = 120;
  if (name.size() <= kMaxShownBytes) return json_quote(name);
  return json_quote(std::string(name.substr(0, kMaxShownBytes)) + "...");
}

}  // namespace paceline
