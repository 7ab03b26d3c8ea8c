#include "grammar/schema_emitter.h"

#include <algorithm>
#include <array>

#include "base/json_writer.h"
#include "grammar/json_text.h"

namespace paceline {
namespace {

// A blank, or a new line and its indentation: what json.dumps writes, at any depth. Bounded, so
// that no text goes on with blanks for ever.
RegexId json_blanks(RegexSet& regexes, JsonTexts texts) {
  constexpr uint32_t kWrittenIndentation = 40;    // 20 levels of 2, 10 of 4
  constexpr uint32_t kAcceptedIndentation = 128;  // 64 levels of 2, 16 of 8
  const uint32_t max_indentation =
      texts == JsonTexts::written ? kWrittenIndentation : kAcceptedIndentation;
  ByteSet indentation;
  indentation[' '] = indentation['\t'] = true;
  const RegexId line =
      regexes.concat(std::array{regexes.optional(regexes.byte('\r')), regexes.byte('\n'),
                                regexes.repeat(regexes.bytes(indentation), 0, max_indentation)});
  return regexes.concat(regexes.optional(regexes.byte(' ')), regexes.optional(line));
}

template <class T>
void add_unless_known(std::vector<const T*>& list, const T& value) {
  const bool is_known =
      std::any_of(list.begin(), list.end(), [&](const T* known) { return *known == value; });
  if (!is_known) list.push_back(&value);
}

}  // namespace

SchemaEmitter::SchemaEmitter(GrammarBuilder& builder)
    : builder_(builder),
      scalars_(builder.regexes(), TextForm::json, builder.json_texts()),
      blanks_(json_blanks(builder.regexes(), builder.json_texts())) {}

SchemaEmitter::SchemaEmitter(GrammarBuilder& builder, SchemaDocument& document)
    : SchemaEmitter(builder) {
  document_ = &document;
  normaliser_.emplace(document, scalars_);
  spacing_ = document.spacing();
  if (!spacing_.is_flexible) blanks_ = RegexSet::kEmpty;
}

RegexId SchemaEmitter::punctuation(std::string_view bytes) {
  if (!spacing_.is_flexible && bytes == ",") return regexes().literal(spacing_.item_separator);
  if (!spacing_.is_flexible && bytes == ":") return regexes().literal(spacing_.key_separator);
  RegexId text = RegexSet::kEmpty;
  for (size_t i = bytes.size(); i-- > 0;) {
    text = regexes().concat(regexes().byte(static_cast<uint8_t>(bytes[i])), text);
    text = regexes().concat(blanks_, text);
  }
  return text;
}

RegexId SchemaEmitter::any_scalar() {
  const std::array options = {scalars_.string(), scalars_.number(), regexes().literal("true"),
                              regexes().literal("false"), regexes().literal("null")};
  return regexes().concat(blanks_, regexes().alternation(options));
}

// The state behind the bracket that opens an object, and blanks.
StateId SchemaEmitter::emit_any_members(RuleId rule, StateId end) {
  set_open_names();
  const RegexId name = regexes().concat(scalars_.string(), punctuation(":"));
  const StateId first = builder_.add_state(rule);
  const StateId value = builder_.add_state(rule);
  const StateId next = builder_.add_state(rule);
  const StateId member = builder_.add_state(rule);
  builder_.add_terminal(first, regexes().byte('}'), end);
  builder_.add_terminal(first, name, value);
  builder_.add_call(value, any_value(), next);
  builder_.add_terminal(next, punctuation("}"), end);
  builder_.add_terminal(next, before_member(","), member);
  builder_.add_terminal(member, name, value);
  return first;
}

RuleId SchemaEmitter::any_value() {
  if (any_value_) return *any_value_;
  const RuleId rule = builder_.add_rule("value");
  any_value_ = rule;
  const StateId start = builder_.start(rule);
  const StateId end = builder_.add_state(rule);
  builder_.set_end(end);
  builder_.add_terminal(start, any_scalar(), end);
  builder_.add_terminal(start, before_member("{"), emit_any_members(rule, end));
  const StateId first = builder_.add_state(rule);
  const StateId next = builder_.add_state(rule);
  const StateId item = builder_.add_state(rule);
  builder_.add_terminal(start, punctuation("["), first);
  builder_.add_terminal(first, punctuation("]"), end);
  builder_.add_call(first, rule, next);
  builder_.add_terminal(next, punctuation("]"), end);
  builder_.add_terminal(next, punctuation(","), item);
  builder_.add_call(item, rule, next);
  return rule;
}

RuleId SchemaEmitter::any_object() {
  const RuleId rule = builder_.add_rule("object");
  const StateId end = builder_.add_state(rule);
  builder_.set_end(end);
  builder_.add_terminal(builder_.start(rule), before_member("{"), emit_any_members(rule, end));
  return rule;
}

RegexId SchemaEmitter::scalars_of(const SchemaConjunct& conjunct) {
  std::vector<RegexId> options;
  if ((conjunct.kinds & kNullKind) != 0) options.push_back(regexes().literal("null"));
  if ((conjunct.kinds & kFalseKind) != 0) options.push_back(regexes().literal("false"));
  if ((conjunct.kinds & kTrueKind) != 0) options.push_back(regexes().literal("true"));
  if ((conjunct.kinds & kNumberKind) != 0) options.push_back(conjunct.number_language);
  if ((conjunct.kinds & kStringKind) != 0) {
    options.push_back(conjunct.strings.is_any() ? scalars_.string()
                                                : json_quoted(regexes(), conjunct.string_language));
  }
  return regexes().alternation(options);
}

std::optional<std::vector<RegexId>> SchemaEmitter::few_values(const SchemaSet& set) {
  constexpr size_t kFew = 8;
  const SchemaSet key = normaliser_->canonical(set);
  if (key.empty()) return std::nullopt;
  std::map<std::string, RegexId> texts;  // by value
  for (const SchemaConjunct& conjunct : normaliser_->conjuncts(key)) {
    const JsonKinds kinds = conjunct.kinds;
    if ((kinds & (kArrayKind | kObjectKind)) != 0) return std::nullopt;
    if ((kinds & kStringKind) != 0 && !conjunct.strings.values) return std::nullopt;
    if ((kinds & kNumberKind) != 0 && !conjunct.numbers.values) return std::nullopt;
    for (const auto& [kind, name] :
         {std::pair{kNullKind, "null"}, {kFalseKind, "false"}, {kTrueKind, "true"}}) {
      if ((kinds & kind) != 0) texts.emplace(name, regexes().literal(name));
    }
    if ((kinds & kNumberKind) != 0) {
      for (const std::string& number : *conjunct.numbers.values) {
        const std::array both = {json_number_equal_to(regexes(), number), conjunct.number_language};
        RegexId& text = texts.try_emplace(number, RegexSet::kNothing).first->second;
        text = regexes().alternation(text, regexes().intersection(both));
      }
    }
    if ((kinds & kStringKind) != 0) {
      for (const std::string_view& value : *conjunct.strings.values) {
        if (!regexes().matches(conjunct.string_language, schema_string_body(value))) continue;
        texts.emplace(json_quote(value),
                      json_quoted(regexes(), schema_any_of_texts(regexes(), {&value, 1})));
      }
    }
    if (texts.size() > kFew) return std::nullopt;
  }
  std::vector<RegexId> found;
  for (const auto& [value, text] : texts) {
    if (!regexes().is_nothing(text)) found.push_back(text);
  }
  return found;
}

// What stands before in the array must be known: that is so where there are few values.
bool SchemaEmitter::can_be_unique(const SchemaArrayRules& arrays) {
  return arrays.max <= 1 ||
         (arrays.prefix.empty() && arrays.contains.empty() && few_values(arrays.rest).has_value());
}

void SchemaEmitter::check_refusals(const SchemaConjunct& conjunct) {
  for (const auto& [node, refusal] : conjunct.refusals) {
    if ((refusal->kinds & conjunct.kinds) == 0) continue;
    document_->leave_out(*node->json, refusal->keyword, refusal->reason);
  }
}

// Without `uniqueItems` where that can't be enforced.
const SchemaArrayRules& SchemaEmitter::enforced_arrays(const SchemaConjunct& conjunct) {
  const SchemaArrayRules& arrays = conjunct.arrays;
  if (arrays.unique == nullptr || can_be_unique(arrays)) return arrays;
  document_->leave_out(*arrays.unique->json, "uniqueItems",
                       "enforcing it takes \"maxItems\" of 1, or \"items\" that are one of at "
                       "most 8 values");
  SchemaArrayRules& wider = wider_arrays_.emplace_back(arrays);
  wider.unique = nullptr;
  return wider;
}

const SchemaEmitter::Form& SchemaEmitter::form(const SchemaSet& set) {
  if (const auto found = forms_.find(set); found != forms_.end()) return found->second;
  Form form;
  std::vector<RegexId> scalars;
  for (const SchemaConjunct& conjunct : normaliser_->conjuncts(set)) {
    check_refusals(conjunct);
    scalars.push_back(scalars_of(conjunct));
    if ((conjunct.kinds & kArrayKind) != 0) {
      add_unless_known(form.arrays, enforced_arrays(conjunct));
    }
    if ((conjunct.kinds & kObjectKind) != 0) add_unless_known(form.objects, conjunct.objects);
  }
  form.scalars = regexes().alternation(scalars);
  return forms_.emplace(set, std::move(form)).first->second;
}

bool SchemaEmitter::has_values(const SchemaSet& set) {
  const SchemaSet key = normaliser_->canonical(set);
  if (key.empty()) return true;
  const Form& found = form(key);
  return found.scalars != RegexSet::kNothing || !found.arrays.empty() || !found.objects.empty();
}

RuleId SchemaEmitter::rule(const SchemaSet& set) {
  const SchemaSet key = normaliser_->canonical(set);
  if (key.empty()) return any_value();
  const auto [entry, is_new] = rules_.try_emplace(key);
  if (is_new) {
    entry->second = builder_.add_rule("schema");
    pending_.emplace_back(entry->second, &form(key));
  }
  return entry->second;
}

void SchemaEmitter::add_value(StateId from, RegexId lead, const SchemaSet& set, StateId to,
                              GrammarBuilder::Counting counting) {
  const SchemaSet key = normaliser_->canonical(set);
  if (!key.empty()) {
    const Form& value = form(key);
    if (value.arrays.empty() && value.objects.empty()) {
      if (value.scalars == RegexSet::kNothing) return;
      const RegexId text = regexes().concat(std::array{lead, blanks_, value.scalars});
      return builder_.add_terminal(from, text, to, counting);
    }
  }
  const RuleId called = rule(key);
  if (lead == RegexSet::kEmpty) return builder_.add_call(from, called, to, counting);
  const auto [entry, is_new] = before_calls_.try_emplace(std::pair(called, to));
  if (is_new) {
    entry->second = builder_.add_state(current_rule_);
    builder_.add_call(entry->second, called, to);
  }
  builder_.add_terminal(from, lead, entry->second, counting);
}

void SchemaEmitter::emit(RuleId rule, const Form& form) {
  current_rule_ = rule;
  const StateId start = builder_.start(rule);
  const StateId end = builder_.add_state(rule);
  builder_.set_end(end);
  if (form.scalars != RegexSet::kNothing) {
    builder_.add_terminal(start, regexes().concat(blanks_, form.scalars), end);
  }
  const auto emit_each = [&](const auto& list, RegexId bracket, auto emit_one) {
    if (list.empty()) return;
    const StateId open = builder_.add_state(rule);
    builder_.add_terminal(start, bracket, open);
    for (const auto* rules : list) {
      const StateId from = list.size() == 1 ? open : builder_.add_state(rule);
      if (list.size() > 1) builder_.add_empty(open, from);
      emit_one(*this, *rules, from, end);
    }
  };
  emit_each(form.arrays, punctuation("["), emit_schema_array);
  emit_each(form.objects, before_member("{"), emit_schema_object);
}

void SchemaEmitter::finish() {
  while (!pending_.empty()) {
    const auto [rule, form] = pending_.back();
    pending_.pop_back();
    emit(rule, *form);
  }
}

}  // namespace paceline
