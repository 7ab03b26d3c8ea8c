// Shared by the tests of tools/: whether a grammar of turns takes a text, byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/matcher.h"
#include "tools/special_text.h"
#include "tools/turn_grammar.h"

namespace paceline {

// Every byte is a token; 0xFF stands in front of a special token's text.
inline std::shared_ptr<const TokenTrie> byte_trie() {
  static const auto trie = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    return std::make_shared<const TokenTrie>(tokens);
  }();
  return trie;
}

class TurnMatching {
 public:
  TurnMatching(const TurnFormat& format, const ToolSet& tools, TurnGrammarOptions options,
               std::vector<std::string> special_tokens = {})
      : special_tokens_(std::move(special_tokens)) {
    options.special_tokens = special_tokens_;
    GrammarBuilder builder;
    const RuleId rule = add_turn_grammar(format, tools, options, builder);
    constraint_ = std::make_shared<Constraint>(std::move(builder).finish(rule), byte_trie());
  }

  // The bytes of `text`, special tokens included, that may come one after the other.
  size_t num_taken(std::string_view text, bool* is_complete = nullptr) const {
    const std::string marked = SpecialText(special_tokens_).marked(text);
    Matcher matcher(constraint_);
    for (size_t at = 0; at < marked.size(); ++at) {
      if (!matcher.accept(static_cast<uint8_t>(marked[at]))) return at;
    }
    if (is_complete != nullptr) *is_complete = matcher.is_complete();
    return marked.size();
  }
  const std::vector<std::string>& warnings() const { return constraint_->warnings(); }
  bool accepts(std::string_view text) const {
    bool is_complete = false;
    num_taken(text, &is_complete);
    return is_complete;
  }

 private:
  std::vector<std::string> special_tokens_;
  std::shared_ptr<Constraint> constraint_;
};

}  // namespace paceline
