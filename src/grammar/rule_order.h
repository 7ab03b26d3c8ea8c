// The order of a grammar's rules in which each follows the rules that it refers to.
#pragma once

#include <vector>

#include "grammar/source_grammar.h"

namespace paceline {

struct RuleOrder {
  std::vector<SourceRuleId> rules;  // that `root` reaches
  std::vector<bool> is_recursive;   // by rule: refers to itself, perhaps through others
};

// Recursive rules stand in any order among each other.
RuleOrder order_rules(const SourceGrammar& source, SourceRuleId root);

}  // namespace paceline
