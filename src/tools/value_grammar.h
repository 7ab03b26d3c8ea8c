// The grammar of values in a notation that isn't JSON.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/json.h"
#include "grammar/grammar.h"
#include "tools/special_text.h"
#include "tools/turn_format.h"

namespace paceline {

// Writes rules of one notation. Of a schema it obeys types, properties (in their order, or sorted),
// required, items, constants, combinations and references within the schema; numbers obey all of
// it.
class ValueGrammar {
 public:
  ValueGrammar(const ValueNotation& notation, bool sorts_keys, const SpecialText& special,
               GrammarBuilder& builder)
      : notation_(notation), sorts_keys_(sorts_keys), special_(special), builder_(builder) {}

  // The values of these kinds (JsonKinds) that `schema`, a part of `root`, allows. Both must live
  // as long as this.
  RuleId rule(const Json& schema, const Json& root, uint8_t kinds);
  // The text of a string without its quotes: it doesn't have `end` in it.
  RegexId string_text(StringNotation::Escapes escapes, std::string_view end);

 private:
  RuleId any(uint8_t kinds);
  RegexId string();
  RegexId constant(const Json& value);
  RegexId punctuation(char c);
  void add_scalars(const Json& schema, uint8_t kinds, RuleId rule, StateId end);
  void add_object(const Json& schema, const Json& root, RuleId rule, StateId end);
  void add_any_members(RuleId rule, StateId open, StateId end);
  void add_array(const Json& schema, const Json& root, RuleId rule, StateId end);
  RegexId key(std::string_view name);
  RegexId any_key();

  const ValueNotation& notation_;
  bool sorts_keys_;
  const SpecialText& special_;
  GrammarBuilder& builder_;
  std::map<std::pair<const Json*, uint8_t>, RuleId> rules_;
  std::map<uint8_t, RuleId> any_rules_;
};

}  // namespace paceline
