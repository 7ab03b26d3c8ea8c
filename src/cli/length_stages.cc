#include "cli/length_stages.h"

#include <optional>

#include "cli/usage_error.h"
#include "cli/words.h"

namespace paceline {
namespace {

std::optional<LengthStage> parse_stage(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto length = parse_number<int64_t>(text.substr(0, colon));
  const auto until = parse_number<double>(text.substr(colon + 1));
  if (!length || !until) return std::nullopt;
  return LengthStage{.length = *length, .until = *until};
}

}  // namespace

std::vector<LengthStage> parse_length_stages(std::string_view text, std::string_view where) {
  std::vector<LengthStage> stages;
  LengthStage last;
  while (true) {
    const std::string_view one = text.substr(0, text.find(','));
    const auto stage = parse_stage(one);
    const bool is_valid = stage && stage->length >= 1 && stage->length > last.length &&
                          stage->until > last.until && stage->until <= 1;
    if (!is_valid) {
      throw UsageError(
          "{}: found \"{}\", expected LENGTH:PART,... with rising lengths and parts of "
          "the run up to 1, as 256:0.45,512:0.85",
          where, one);
    }
    stages.push_back(*stage);
    last = *stage;
    if (one.size() == text.size()) return stages;
    text.remove_prefix(one.size() + 1);
  }
}

}  // namespace paceline
