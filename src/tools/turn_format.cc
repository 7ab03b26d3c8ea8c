#include "tools/turn_format.h"

#include <algorithm>

#include "base/json_writer.h"
#include "paceline/error.h"
#include "tools/text_units.h"

namespace paceline {

bool ReasoningFormat::is_opened_by(std::string_view prompt) const {
  return begin.empty() || trimmed_right(prompt).ends_with(begin);
}

bool ReasoningFormat::is_closed_by(std::string_view prompt) const {
  const size_t last = prompt.find_last_not_of(" \t\r\n");
  return last != prompt.npos && prompt.substr(0, last + 1).ends_with(end);
}

std::string ReasoningFormat::kwargs_for_effort(std::string_view effort) const {
  constexpr std::string_view kEffort = "reasoning_effort";
  const bool is_off = effort == "none";
  std::string json;
  JsonWriter writer(json);
  writer.begin_object();
  if (toggle && toggle->variable != kEffort) {
    writer.key(toggle->variable).raw(is_off ? toggle->off : toggle->on);
  }
  if (reads_effort || (toggle && toggle->variable == kEffort)) {
    writer.member(kEffort, std::string(effort));
  }
  writer.end_object();
  return json;
}

bool CallFormat::has(CallPiece::Kind kind) const {
  return std::any_of(pieces.begin(), pieces.end(),
                     [&](const CallPiece& piece) { return piece.kind == kind; });
}

const CallFormat& TurnFormat::calls_or_throw() const {
  if (!calls) throw Error(ErrorCode::unsupported, "tool calls: " + no_calls);
  return *calls;
}

}  // namespace paceline
