// Constraints over the letters of the engine's fixture.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grammar/constraint.h"
#include "grammar/matcher.h"
#include "tests/engine/engine_fixture.h"

namespace paceline::testing {

// Token i < 26 writes a letter, the others nothing.
inline std::shared_ptr<const TokenTrie> letter_trie() {
  static const auto trie = [] {
    std::vector<std::string> tokens;
    for (TokenId id = 0; id < kVocab; ++id) {
      tokens.emplace_back(letter(id).is_special ? std::string_view() : letter(id).bytes);
    }
    return std::make_shared<const TokenTrie>(tokens);
  }();
  return trie;
}

inline std::shared_ptr<Constraint> constraint_of(const ConstraintSpec& spec, bool forces = true) {
  Tokenise tokenise;
  if (forces) {
    tokenise = [](std::string_view text) {
      std::vector<uint32_t> ids;
      for (const char byte : text) ids.push_back(static_cast<uint32_t>(byte - 'a'));
      return ids;
    };
  }
  return std::make_shared<Constraint>(compile_constraint(spec), letter_trie(), WalkerLimits{},
                                      std::move(tokenise));
}

inline std::shared_ptr<Constraint> regex_constraint(std::string pattern, bool forces = true) {
  return constraint_of({.kind = ConstraintSpec::Kind::regex, .text = std::move(pattern)}, forces);
}

}  // namespace paceline::testing
