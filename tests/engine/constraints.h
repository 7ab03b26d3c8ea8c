// Constraints over the letters of the engine's fixture.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grammar/constraint.h"
#include "grammar/matcher.h"
#include "tests/engine/engine_fixture.h"

namespace paceline::testing {

// What letter() says; special tokens write nothing.
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
      // The longest token first.
      std::vector<uint32_t> ids;
      while (!text.empty()) {
        uint32_t best = 0;
        for (uint32_t id = 0; id < kVocab; ++id) {
          const TokenText one = letter(static_cast<TokenId>(id));
          if (one.is_special || !text.starts_with(one.bytes)) continue;
          if (one.bytes.size() > letter(static_cast<TokenId>(best)).bytes.size() ||
              !text.starts_with(letter(static_cast<TokenId>(best)).bytes)) {
            best = id;
          }
        }
        ids.push_back(best);
        text.remove_prefix(letter(static_cast<TokenId>(best)).bytes.size());
      }
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
