#include "tools/value_grammar.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/json_writer.h"
#include "grammar/json_schema.h"
#include "grammar/json_text.h"
#include "grammar/text_form.h"
#include "tools/schema_parts.h"
#include "tools/tool_set.h"
#include "tools/value_notation.h"

namespace paceline {
namespace {

using Escapes = StringNotation::Escapes;

// The schema's restrictions of numbers, alone.
std::string number_schema(const Json& schema) {
  Json::Object document;
  const Json* type = schema.find("type");
  const bool is_integer = type != nullptr && type->is_string() && *type->string() == "integer";
  document.emplace_back("type", Json(std::string(is_integer ? "integer" : "number")));
  for (const char* name :
       {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}) {
    if (const Json* value = schema.find(name)) document.emplace_back(name, *value);
  }
  return to_json(Json(std::move(document)));
}

// The one schema that this one is a name for, or wraps.
const Json* inner_schema(const Json& schema, const Json& root) {
  if (schema.find("$ref") != nullptr) return reference_target(schema, root);
  const Json* all = schema.find("allOf");
  if (all == nullptr || !all->is_array() || all->array()->size() != 1) return nullptr;
  return &all->array()->front();
}

const Json::Array* options_of(const Json& schema) {
  for (const char* keyword : {"anyOf", "oneOf"}) {
    const Json* options = schema.find(keyword);
    if (options != nullptr && options->is_array()) return options->array();
  }
  return nullptr;
}

std::vector<Json> constants_of(const Json& schema) {
  if (const Json* value = schema.find("const")) return {*value};
  const Json* values = schema.find("enum");
  return values != nullptr && values->is_array() ? *values->array() : std::vector<Json>{};
}

}  // namespace

RegexId ValueGrammar::punctuation(char c) {
  RegexSet& regexes = builder_.regexes();
  const RegexId byte = regexes.byte(static_cast<uint8_t>(c));
  return c == ',' || c == ':' ? regexes.concat(byte, regexes.optional(regexes.byte(' '))) : byte;
}

RegexId ValueGrammar::string_text(Escapes escapes, std::string_view end) {
  RegexSet& regexes = builder_.regexes();
  const RegexId characters = regexes.star(any_character(regexes, TextForm::utf8));
  if (escapes == Escapes::none) return regexes.intersection(characters, text_without(regexes, end));
  ByteSet plain;
  plain.set();
  plain.reset('\\').reset('\n');
  if (!end.empty()) plain.reset(static_cast<uint8_t>(end.front()));
  for (uint8_t control = 0; control < 0x20; ++control) plain.reset(control);
  constexpr std::string_view kEscapable = "\\\"/bfnrt";
  ByteSet escapable;
  for (const char c : kEscapable) escapable.set(static_cast<uint8_t>(c));
  if (escapes == Escapes::python) {
    escapable.reset('/');
    escapable.set('\'');
  }
  const RegexId escape = regexes.concat(regexes.byte('\\'), regexes.bytes(escapable));
  const RegexId body = regexes.star(regexes.alternation(regexes.bytes(plain), escape));
  return regexes.intersection(characters, body);
}

RegexId ValueGrammar::string() {
  RegexSet& regexes = builder_.regexes();
  const StringNotation& strings = notation_.strings;
  const RegexId quote = special_.literal(regexes, strings.quote);
  const std::array parts{quote, string_text(strings.escapes, strings.quote), quote};
  const RegexId own = regexes.concat(parts);
  if (strings.escapes != Escapes::python) return own;
  return regexes.alternation(own, json_string(regexes));  // JSON's quotes are Python's, too
}

RegexId ValueGrammar::constant(const Json& value) {
  return special_.literal(builder_.regexes(), written_value(value, notation_));
}

RegexId ValueGrammar::key(std::string_view name) {
  const std::string quoted = written_value(Json(std::string(name)), notation_);
  return special_.literal(builder_.regexes(), notation_.quotes_keys ? quoted : std::string(name));
}

RegexId ValueGrammar::any_key() {
  if (notation_.quotes_keys) return string();
  RegexSet& regexes = builder_.regexes();
  ByteSet bytes;
  for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-")) {
    bytes.set(static_cast<uint8_t>(c));
  }
  for (char c = '0'; c <= '9'; ++c) bytes.set(static_cast<uint8_t>(c));
  constexpr uint32_t kMaxKeyBytes = 64;
  return regexes.repeat(regexes.bytes(bytes), 1, kMaxKeyBytes);
}

// Any value of these kinds.
RuleId ValueGrammar::any(uint8_t kinds) {
  const auto known = any_rules_.find(kinds);
  if (known != any_rules_.end()) return known->second;
  const RuleId rule = builder_.add_rule("value");
  any_rules_.emplace(kinds, rule);
  const StateId end = builder_.add_state(rule);
  builder_.set_end(end);
  add_scalars(Json(true), kinds, rule, end);
  if ((kinds & kObjectKind) != 0) {
    const StateId open = builder_.add_state(rule);
    builder_.add_terminal(builder_.start(rule), punctuation('{'), open);
    add_any_members(rule, open, end);
  }
  if ((kinds & kArrayKind) != 0) add_array(Json(true), Json(true), rule, end);
  return rule;
}

void ValueGrammar::add_any_members(RuleId rule, StateId open, StateId end) {
  const StateId first = builder_.add_state(rule);
  const StateId behind_key = builder_.add_state(rule);
  const StateId behind_value = builder_.add_state(rule);
  builder_.add_terminal(open, punctuation('}'), end);
  builder_.add_empty(open, first);
  builder_.add_terminal(first, builder_.regexes().concat(any_key(), punctuation(':')), behind_key);
  builder_.add_call(behind_key, any(kAllKinds), behind_value);
  builder_.add_terminal(behind_value, punctuation(','), first);
  builder_.add_terminal(behind_value, punctuation('}'), end);
}

void ValueGrammar::add_scalars(const Json& schema, uint8_t kinds, RuleId rule, StateId end) {
  const StateId start = builder_.start(rule);
  RegexSet& regexes = builder_.regexes();
  const auto word = [&](JsonKinds kind, const std::string& text) {
    if ((kinds & kind) != 0) builder_.add_terminal(start, regexes.literal(text), end);
  };
  word(kNullKind, notation_.null_text);
  word(kTrueKind, notation_.true_text);
  word(kFalseKind, notation_.false_text);
  if ((kinds & kStringKind) != 0) builder_.add_terminal(start, string(), end);
  if ((kinds & kNumberKind) != 0) {
    // Of strict tools the whole schema has been checked.
    const RuleId number =
        add_json_schema(number_schema(schema), builder_, SchemaRigor::best_effort);
    builder_.add_call(start, number, end);
  }
}

// The properties in their order; before each a comma, unless it is the first that stands there.
void ValueGrammar::add_object(const Json& schema, const Json& root, RuleId rule, StateId end) {
  const StateId open = builder_.add_state(rule);
  builder_.add_terminal(builder_.start(rule), punctuation('{'), open);
  const Json* properties = schema.find("properties");
  if (properties == nullptr || !properties->is_object() || properties->object()->empty()) {
    add_any_members(rule, open, end);
    return;
  }
  std::vector<const Json::Member*> members;
  for (const Json::Member& member : *properties->object()) members.push_back(&member);
  if (sorts_keys_) {
    std::stable_sort(members.begin(), members.end(),
                     [](const auto* a, const auto* b) { return is_before(a->first, b->first); });
  }
  const std::set<std::string> required = required_of(schema);
  StateId without = open;  // nothing stands yet
  StateId with = builder_.add_state(rule);
  for (const Json::Member* member : members) {
    const StateId next_without = builder_.add_state(rule);
    const StateId next_with = builder_.add_state(rule);
    const StateId value = builder_.add_state(rule);
    RegexSet& regexes = builder_.regexes();
    const RegexId lead = regexes.concat(key(member->first), punctuation(':'));
    builder_.add_terminal(without, lead, value);
    builder_.add_terminal(with, regexes.concat(punctuation(','), lead), value);
    builder_.add_call(value, this->rule(member->second, root, kAllKinds), next_with);
    if (!required.contains(member->first)) {
      builder_.add_empty(without, next_without);
      builder_.add_empty(with, next_with);
    }
    without = next_without;
    with = next_with;
  }
  builder_.add_terminal(without, punctuation('}'), end);
  builder_.add_terminal(with, punctuation('}'), end);
}

void ValueGrammar::add_array(const Json& schema, const Json& root, RuleId rule, StateId end) {
  const StateId open = builder_.add_state(rule);
  const StateId first = builder_.add_state(rule);
  const StateId behind = builder_.add_state(rule);
  const Json* items = schema.find("items");
  const bool has_items = items != nullptr && items->is_object();
  const RuleId item = has_items ? this->rule(*items, root, kAllKinds) : any(kAllKinds);
  builder_.add_terminal(builder_.start(rule), punctuation('['), open);
  builder_.add_terminal(open, punctuation(']'), end);
  builder_.add_empty(open, first);
  builder_.add_call(first, item, behind);
  builder_.add_terminal(behind, punctuation(','), first);
  builder_.add_terminal(behind, punctuation(']'), end);
}

RuleId ValueGrammar::rule(const Json& schema, const Json& root, uint8_t kinds) {
  kinds &= kinds_of_schema(schema, root);
  if (!schema.is_object()) return any(kinds);
  const auto known = rules_.find({&schema, kinds});
  if (known != rules_.end()) return known->second;
  const RuleId rule = builder_.add_rule("value");
  rules_.emplace(std::pair(&schema, kinds), rule);
  const StateId start = builder_.start(rule);
  const StateId end = builder_.add_state(rule);
  builder_.set_end(end);
  const std::vector<Json> constants = constants_of(schema);
  if (!constants.empty()) {
    for (const Json& value : constants) {
      if ((kind_of_value(value) & kinds) != 0) builder_.add_terminal(start, constant(value), end);
    }
  } else if (const Json* inner = inner_schema(schema, root)) {
    builder_.add_call(start, this->rule(*inner, root, kinds), end);
  } else if (const Json::Array* options = options_of(schema)) {
    for (const Json& option : *options) {
      builder_.add_call(start, this->rule(option, root, kinds), end);
    }
  } else {
    add_scalars(schema, kinds, rule, end);
    if ((kinds & kObjectKind) != 0) add_object(schema, root, rule, end);
    if ((kinds & kArrayKind) != 0) add_array(schema, root, rule, end);
  }
  return rule;
}

}  // namespace paceline
