// Any bytes are either a regular expression, under which a text can be written byte by byte, or an
// Error. What is written is UTF-8, or stands between the quotes of a JSON string.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "fuzz/constrained_text.h"
#include "grammar/pattern.h"
#include "paceline/error.h"

namespace {

using namespace paceline;
using namespace paceline::fuzz;

std::string write_matching(std::string_view pattern, TextForm form, PatternMatch match) {
  constexpr std::size_t kMaxWritten = 24;
  GrammarBuilder builder(kSmallGrammarLimits);
  const RegexId regex = parse_pattern(builder.regexes(), pattern, form, match);
  const RuleId root = builder.add_rule("text");
  const StateId end = builder.add_state(root);
  builder.add_terminal(builder.start(root), regex, end);
  builder.set_end(end);
  return write_bytes(std::move(builder).finish(root), pattern, kMaxWritten);
}

void check(std::string_view pattern, TextForm form, PatternMatch match) {
  try {
    const std::string text = write_matching(pattern, form, match);
    if (form == TextForm::utf8) {
      require(is_valid_utf8(text));
    } else {
      require(parse_json('"' + text + '"', "text").is_string());
    }
  } catch (const Error& error) {
    require_refusal(error);
    require(is_valid_utf8(error.what()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view pattern(reinterpret_cast<const char*>(data), size);
  check(pattern, TextForm::utf8, PatternMatch::whole);
  check(pattern, TextForm::json, PatternMatch::anywhere);
  return 0;
}
