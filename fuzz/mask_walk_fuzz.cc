// A constraint and a vocabulary that is cut out of it: each mask is what accepting every single
// token says, whatever was walked, taken back or refused before.
//
// Before the first NUL stands the constraint: a grammar, or a JSON Schema where it begins with a
// brace. The bytes behind it choose tokens.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "fuzz/constrained_text.h"
#include "grammar/constraint.h"
#include "paceline/error.h"

namespace {

using namespace paceline;
using namespace paceline::fuzz;

// All bytes, pieces of the constraint, and pieces with what often stands behind them.
std::vector<std::string> tokens_from(std::string_view source) {
  constexpr size_t kMaxPieces = 24;
  std::vector<std::string> tokens = byte_tokens();
  for (size_t i = 0; i < source.size() && i < kMaxPieces; ++i) {
    const size_t length = 2 + i % 5;
    const std::string piece(source.substr(i * 7 % source.size(), length));
    tokens.push_back(piece);
    tokens.push_back(piece + "\":");
    tokens.push_back(piece + piece);
  }
  for (const char* text : {", \"", "\": ", "{\"", "\n  ", "],", "aaaaaaaaaaaa", "1.0", ""}) {
    tokens.emplace_back(text);
  }
  return tokens;
}

void require_same_as_each_token(const Matcher& matcher, const TokenSet& mask) {
  for (uint32_t token = 0; token < mask.num_tokens(); ++token) {
    Matcher copy = matcher;
    require(copy.accept(token) == mask.allows(token));
  }
}

// Steps forward by allowed tokens; a choice above 250 takes the last two back.
void walk(Matcher matcher, std::string_view choices) {
  constexpr size_t kMaxSteps = 12;
  for (size_t i = 0; i < choices.size() && i < kMaxSteps; ++i) {
    const auto mask = matcher.mask();
    require_same_as_each_token(matcher, *mask);
    require(mask->num_allowed() > 0 || matcher.is_complete());
    const auto choice = static_cast<uint8_t>(choices[i]);
    if (choice > 250 || mask->num_allowed() == 0) {
      matcher.rollback(std::min<size_t>(2, matcher.num_tokens()));
      continue;
    }
    const std::string forced = matcher.forced_bytes(3);
    const uint32_t token = allowed_token(*mask, choice);
    const std::string_view bytes = matcher.constraint().trie().bytes(token);
    const size_t common = std::min(forced.size(), bytes.size());
    require(bytes.substr(0, common) == std::string_view(forced).substr(0, common));
    require(matcher.accept(token));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view source = input.substr(0, end);
  const std::string_view choices = input.substr(std::min(end + 1, input.size()));
  const ConstraintSpec spec{.kind = source.starts_with('{') ? ConstraintSpec::Kind::json_schema
                                                            : ConstraintSpec::Kind::grammar,
                            .text = std::string(source),
                            .choices = {}};
  try {
    const auto constraint = std::make_shared<Constraint>(
        compile_constraint(spec, kSmallGrammarLimits),
        std::make_shared<const TokenTrie>(tokens_from(source)), kSmallWalkerLimits);
    walk(Matcher(constraint), choices);
  } catch (const Error& error) {
    require_refusal(error);
    require(is_valid_utf8(error.what()));
  }
  return 0;
}
