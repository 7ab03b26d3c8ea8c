// GrammarPath writes a rule of a grammar from left to right.
#pragma once

#include <string>
#include <string_view>

#include "grammar/grammar.h"
#include "tools/special_text.h"

namespace paceline {

class GrammarPath {
 public:
  GrammarPath(GrammarBuilder& builder, const SpecialText& special, std::string rule_name)
      : builder_(builder),
        special_(special),
        rule_(builder.add_rule(std::move(rule_name))),
        at_(builder.start(rule_)) {}

  // Each goes on behind what it reads.
  void text(std::string_view literal) {
    if (!literal.empty()) regex(special_.literal(builder_.regexes(), literal));
  }
  void regex(RegexId regex) {
    const StateId next = builder_.add_state(rule_);
    builder_.add_terminal(at_, regex, next);
    at_ = next;
  }
  void call(RuleId rule) {
    const StateId next = builder_.add_state(rule_);
    builder_.add_call(at_, rule, next);
    at_ = next;
  }

  // The place that has been reached, to which others may lead, or from which another way begins.
  StateId here() const { return at_; }
  void go_to(StateId state) { at_ = state; }
  void join(StateId state) { builder_.add_empty(at_, state); }
  StateId add_state() { return builder_.add_state(rule_); }

  RuleId end() {
    builder_.set_end(at_);
    return rule_;
  }

  GrammarBuilder& builder() { return builder_; }
  RegexSet& regexes() { return builder_.regexes(); }
  const SpecialText& special() const { return special_; }

 private:
  GrammarBuilder& builder_;
  const SpecialText& special_;
  RuleId rule_;
  StateId at_;
};

}  // namespace paceline
