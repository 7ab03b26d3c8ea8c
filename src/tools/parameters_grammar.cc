// The grammar of arguments that stand one by one, each between a key and a mark.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/json_writer.h"
#include "grammar/json_schema.h"
#include "grammar/json_text.h"
#include "grammar/text_form.h"
#include "tools/arguments_grammar.h"
#include "tools/grammar_path.h"
#include "tools/schema_parts.h"
#include "tools/text_units.h"
#include "tools/value_grammar.h"

namespace paceline {
namespace {

using Escapes = StringNotation::Escapes;
constexpr JsonKinds kContainers = kArrayKind | kObjectKind;

class ParametersGrammar {
 public:
  ParametersGrammar(const ArgumentsFormat& format, const Tool& tool, const SpecialText& special,
                    GrammarBuilder& builder)
      : format_(format),
        tool_(tool),
        special_(special),
        builder_(builder),
        root_(parse_json(tool.schema(), "schema")),
        properties_(tool.schema(), builder, tool.rigor()),
        values_(format.nested, format.sorts_keys, special, builder) {}

  RuleId write();

 private:
  // A key with its value and the texts around them.
  RuleId parameter(const ToolParameter& of);
  RuleId other_parameter();
  // False: there is no value.
  bool add_string(GrammarPath& path, const ToolParameter* of);
  bool add_other(GrammarPath& path, const ToolParameter* of, JsonKinds kinds);
  RegexId string_text(const ToolParameter* of);
  RegexId other_key();

  const ArgumentsFormat& format_;
  const Tool& tool_;
  const SpecialText& special_;
  GrammarBuilder& builder_;
  Json root_;
  JsonSchemaProperties properties_;
  ValueGrammar values_;
};

RuleId ParametersGrammar::write() {
  std::vector<const ToolParameter*> order;
  for (const ToolParameter& one : tool_.parameters()) order.push_back(&one);
  if (format_.sorts_keys) {
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return is_before(a->name, b->name); });
  }
  GrammarPath path(builder_, special_, "arguments");
  const auto step = [&](StateId from, std::string_view lead, RuleId rule, StateId to) {
    path.go_to(from);
    path.text(lead);
    path.call(rule);
    path.join(to);
  };
  StateId without = path.here();  // nothing stands yet
  StateId with = path.add_state();
  for (const ToolParameter* one : order) {
    if (one->kinds == 0 && !one->is_required) continue;
    const StateId next_without = path.add_state();
    const StateId next_with = path.add_state();
    const RuleId rule = parameter(*one);
    step(without, format_.begin_blanks, rule, next_with);
    step(with, format_.separator, rule, next_with);
    if (!one->is_required) {
      builder_.add_empty(without, next_without);
      builder_.add_empty(with, next_with);
    }
    without = next_without;
    with = next_with;
  }
  if (tool_.takes_others()) {
    const RuleId rule = other_parameter();
    step(without, format_.begin_blanks, rule, with);
    step(with, format_.separator, rule, with);
  }
  const StateId end = path.add_state();
  path.go_to(without);
  path.text(format_.empty_blanks);
  path.join(end);
  path.go_to(with);
  path.text(format_.end_blanks);
  path.join(end);
  path.go_to(end);
  return path.end();
}

RuleId ParametersGrammar::parameter(const ToolParameter& of) {
  GrammarPath path(builder_, special_, "parameter " + of.name);
  path.text(format_.before_key + of.name);
  const StateId value = path.here();
  const StateId end = path.add_state();
  bool has_values = false;
  if ((of.kinds & kStringKind) != 0 && add_string(path, &of)) {
    has_values = true;
    path.join(end);
    path.go_to(value);
  }
  const auto kinds = static_cast<JsonKinds>(of.kinds & ~kStringKind);
  if (kinds != 0 && add_other(path, &of, kinds)) {
    has_values = true;
    path.join(end);
  }
  if (!has_values && of.is_required) {
    const std::string problem = fmt::format(
        "parameter {}: no value that its schema allows can stand in the calls of this chat "
        "template",
        of.name);
    if (tool_.is_strict()) throw Error(ErrorCode::invalid, problem);
    builder_.warn(problem + ", so any text may");
    path.go_to(value);
    add_string(path, nullptr);
    path.join(end);
  }
  path.go_to(end);
  return path.end();
}

RuleId ParametersGrammar::other_parameter() {
  GrammarPath path(builder_, special_, "parameter");
  path.text(format_.before_key);
  path.regex(other_key());
  const StateId value = path.here();
  const StateId end = path.add_state();
  add_string(path, nullptr);
  path.join(end);
  path.go_to(value);
  add_other(path, nullptr, kAllKinds & ~kStringKind);
  path.join(end);
  path.go_to(end);
  return path.end();
}

// A name that the schema doesn't have.
RegexId ParametersGrammar::other_key() {
  RegexSet& regexes = builder_.regexes();
  ByteSet bytes;
  for (char c = '0'; c <= '9'; ++c) bytes.set(static_cast<uint8_t>(c));
  for (char c = 'a'; c <= 'z'; ++c)
    bytes.set(static_cast<uint8_t>(c)).set(static_cast<uint8_t>(c - 32));
  bytes.set('_').set('-');
  constexpr uint32_t kMaxKeyBytes = 64;
  RegexId key = regexes.repeat(regexes.bytes(bytes), 1, kMaxKeyBytes);
  for (const ToolParameter& one : tool_.parameters()) {
    key = regexes.intersection(key, regexes.complement(regexes.literal(one.name)));
  }
  return key;
}

// The strings that the schema allows, as they stand in their frame.
RegexId ParametersGrammar::string_text(const ToolParameter* of) {
  RegexSet& regexes = builder_.regexes();
  const Escapes escapes = format_.string_escapes;
  const RegexId text = values_.string_text(escapes, trimmed(format_.string_frame.close));
  if (of == nullptr || escapes == Escapes::python) return text;
  const TextForm form = escapes == Escapes::none ? TextForm::utf8 : TextForm::json;
  const RegexId allowed = regexes.intersection(text, properties_.strings(of->places, form));
  // In a frame of its own a string isn't taken for anything else.
  if (format_.string_frame != format_.other_frame || (of->kinds & kNumberKind) == 0) return allowed;
  ByteSet blanks;
  for (const char c : std::string_view(" \t\r\n")) blanks.set(static_cast<uint8_t>(c));
  const RegexId around = regexes.star(regexes.bytes(blanks));
  const std::array number{around, json_number(regexes), around};
  return regexes.intersection(allowed, regexes.complement(regexes.concat(number)));
}

bool ParametersGrammar::add_string(GrammarPath& path, const ToolParameter* of) {
  const RegexId text = string_text(of);
  if (builder_.regexes().is_nothing(text)) return false;
  path.text(format_.string_frame.open);
  path.regex(text);
  path.text(format_.string_frame.close);
  return true;
}

// Everything but strings: JSON, but for the words of the template, and its own arrays and objects.
bool ParametersGrammar::add_other(GrammarPath& path, const ToolParameter* of, JsonKinds kinds) {
  path.text(format_.other_frame.open);
  const StateId start = path.here();
  const StateId end = path.add_state();
  bool has_values = false;
  const Json anything(true);
  const Json& schema = of == nullptr ? anything : *of->json;
  const auto accepts = [&](JsonKinds some) {
    return of == nullptr || properties_.has_values(of->places, some);
  };
  const bool is_own = !format_.nested_is_json() && (kinds & kContainers) != 0;
  const bool is_json_too = format_.nested.strings.escapes == Escapes::python;
  const JsonKinds as_json = is_own && !is_json_too ? kinds & ~kContainers : kinds;
  if (is_own && accepts(kinds & kContainers)) {
    path.call(values_.rule(of == nullptr ? anything : schema, root_, kinds & kContainers));
    path.join(end);
    has_values = true;
    path.go_to(start);
  }
  const auto word = [&](JsonKinds kind, std::string_view json, const std::string& text) {
    if ((kinds & kind) == 0 || text == json || !accepts(kind)) return;
    path.text(text);
    path.join(end);
    path.go_to(start);
    has_values = true;
  };
  word(kTrueKind, "true", format_.true_text);
  word(kFalseKind, "false", format_.false_text);
  word(kNullKind, "null", format_.null_text);
  if (as_json != 0) {
    const std::optional<RuleId> rule =
        of == nullptr ? add_json_schema(schema_of_kinds("true", as_json), builder_)
                      : properties_.rule(of->places, as_json);
    if (rule) {
      path.call(*rule);
      path.join(end);
      has_values = true;
    }
  }
  path.go_to(end);
  path.text(format_.other_frame.close);
  return has_values;
}

}  // namespace

RuleId add_parameters_grammar(const ArgumentsFormat& format, const Tool& tool,
                              const SpecialText& special, GrammarBuilder& builder) {
  return ParametersGrammar(format, tool, special, builder).write();
}

}  // namespace paceline
