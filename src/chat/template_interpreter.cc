// Statements.
#include "chat/template_interpreter.h"

#include <fmt/format.h>

#include "chat/python_text.h"
#include "chat/template_compare.h"
#include "chat/template_convert.h"
#include "chat/template_globals.h"
#include "chat/template_object.h"

namespace paceline {
namespace {

class MacroObject final : public TemplateObject {
 public:
  MacroObject(TemplateInterpreter& interpreter, const MacroDefinition& macro, TemplateScope& scope)
      : interpreter_(interpreter), macro_(macro), scope_(scope) {
    scope.keep();
  }
  std::string_view type_name() const override { return "Macro"; }
  bool is_callable() const override { return true; }
  TemplateValue call(TemplateArguments arguments) override {
    return TemplateValue(interpreter_.call_macro(macro_, scope_, std::move(arguments)));
  }
  std::optional<TemplateValue> attribute(std::string_view name) override;

 private:
  TemplateInterpreter& interpreter_;
  const MacroDefinition& macro_;
  TemplateScope& scope_;
};

// The variable `loop` inside {% for %}.
class LoopObject final : public TemplateObject {
 public:
  LoopObject(TemplateInterpreter& interpreter, const ForStatement& loop, TemplateScope& around,
             const TemplateValues& items, int64_t depth)
      : interpreter_(interpreter), loop_(loop), around_(around), items_(items), depth_(depth) {}

  void set_index(size_t index) { index_ = index; }

  std::string_view type_name() const override { return "LoopContext"; }
  bool is_callable() const override { return loop_.is_recursive; }
  TemplateValue call(TemplateArguments arguments) override;
  std::optional<TemplateValue> attribute(std::string_view name) override;

 private:
  TemplateValue cycle(const TemplateValues& values) const;
  TemplateValue changed(TemplateValues values);

  TemplateInterpreter& interpreter_;
  const ForStatement& loop_;
  TemplateScope& around_;
  // A copy: the object may outlive the loop.
  TemplateValues items_;
  size_t index_ = 0;
  int64_t depth_;
  std::optional<TemplateValue> last_changed_;
};

std::optional<TemplateValue> MacroObject::attribute(std::string_view name) {
  if (name == "name") return TemplateValue(macro_.name);
  if (name == "catch_kwargs") return TemplateValue(macro_.specials.contains("kwargs"));
  if (name == "catch_varargs") return TemplateValue(macro_.specials.contains("varargs"));
  if (name == "caller") return TemplateValue(macro_.specials.contains("caller"));
  if (name != "arguments") return std::nullopt;
  TemplateValues names;
  for (const std::string& parameter : macro_.parameters) names.emplace_back(parameter);
  return TemplateValue::tuple(std::move(names));
}

TemplateValue LoopObject::call(TemplateArguments arguments) {
  if (!loop_.is_recursive) {
    throw TemplateError("The loop must have the 'recursive' marker to be called recursively.");
  }
  ArgumentReader reader("loop", std::move(arguments));
  TemplateValue items = reader.required("iterable");
  reader.finish();
  return TemplateValue(interpreter_.run_loop(loop_, around_, std::move(items), depth_ + 1));
}

TemplateValue LoopObject::cycle(const TemplateValues& values) const {
  if (values.empty()) throw TemplateError("no items for cycling given");
  return values[index_ % values.size()];
}

TemplateValue LoopObject::changed(TemplateValues values) {
  TemplateValue now = TemplateValue::tuple(std::move(values));
  if (last_changed_ && equal(*last_changed_, now)) return false;
  last_changed_ = std::move(now);
  return true;
}

std::optional<TemplateValue> LoopObject::attribute(std::string_view name) {
  const auto length = static_cast<int64_t>(items_.size());
  const auto index = static_cast<int64_t>(index_);
  if (name == "index") return TemplateValue(index + 1);
  if (name == "index0") return TemplateValue(index);
  if (name == "first") return TemplateValue(index == 0);
  if (name == "last") return TemplateValue(index + 1 == length);
  if (name == "length") return TemplateValue(length);
  if (name == "revindex") return TemplateValue(length - index);
  if (name == "revindex0") return TemplateValue(length - index - 1);
  if (name == "depth") return TemplateValue(depth_ + 1);
  if (name == "depth0") return TemplateValue(depth_);
  if (name == "previtem") {
    return index > 0 ? items_[index_ - 1] : TemplateValue::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < length ? items_[index_ + 1]
                              : TemplateValue::undefined("there is no next item");
  }
  if (name != "cycle" && name != "changed") return std::nullopt;
  return interpreter_.runtime().function(
      "method", [this, is_cycle = name == "cycle"](TemplateArguments arguments) {
        return is_cycle ? cycle(arguments.positional) : changed(std::move(arguments.positional));
      });
}

}  // namespace

TemplateInterpreter::TemplateInterpreter(const Variables& variables, TemplateRuntime& runtime)
    : runtime_(runtime) {
  scopes_.push_back(std::make_unique<TemplateScope>(nullptr));
  scope_ = scopes_.back().get();
  for (const auto& [name, value] : variables) scope_->set(name, value);
}

TemplateInterpreter::~TemplateInterpreter() = default;

std::string TemplateInterpreter::run(const ScopedBody& body) {
  std::string text;
  const Switched capture(out_, &text);
  hide_names(body);
  run_body(body.statements);
  return text;
}

void TemplateInterpreter::hide_names(const ScopedBody& body) {
  for (const std::string& name : body.names->hidden) {
    scope_->set(name, TemplateValue::undefined(fmt::format("'{}' is undefined", name)));
  }
}

void TemplateInterpreter::write(std::string_view text) {
  if (text.size() > runtime_.limits().output_bytes - out_->size()) {
    throw TemplateError("the template writes more than 4 MiB", ErrorCode::exhausted);
  }
  runtime_.charge(text.size());
  out_->append(text);
}

void TemplateInterpreter::print(const TemplateValue& value) {
  if (value.is_string()) return write(value.text());
  std::string text;
  append_str(text, value, runtime_.limits().output_bytes);
  write(text);
}

TemplateInterpreter::Flow TemplateInterpreter::run_body(const TemplateBody& body) {
  for (const auto& statement : body) {
    const Flow flow = run_statement(*statement);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

TemplateInterpreter::Flow TemplateInterpreter::run_statement(const TemplateStatement& statement) {
  runtime_.step();
  try {
    const auto& what = statement.what;
    if (const auto* text = std::get_if<TextStatement>(&what)) {
      write(text->text);
    } else if (const auto* print_node = std::get_if<PrintStatement>(&what)) {
      print(evaluate(*print_node->value));
    } else if (const auto* if_node = std::get_if<IfStatement>(&what)) {
      return run_if(*if_node);
    } else if (const auto* for_node = std::get_if<ForStatement>(&what)) {
      run_for(*for_node, evaluate(*for_node->items), 0);
    } else if (const auto* set = std::get_if<SetStatement>(&what)) {
      assign(set->target, evaluate(*set->value));
    } else if (const auto* set_block = std::get_if<SetBlockStatement>(&what)) {
      run_set_block(*set_block);
    } else if (const auto* macro = std::get_if<MacroStatement>(&what)) {
      scope_->set(macro->macro.name,
                  TemplateValue(runtime_.make<MacroObject>(*this, macro->macro, *scope_)));
    } else if (const auto* call_node = std::get_if<CallStatement>(&what)) {
      run_call(*call_node);
    } else if (const auto* filter = std::get_if<FilterStatement>(&what)) {
      run_filter_block(*filter);
    } else if (const auto* with = std::get_if<WithStatement>(&what)) {
      return run_with(*with);
    } else if (const auto* scoped = std::get_if<ScopeStatement>(&what)) {
      const NewScope scope(*this, scoped->body);
      return run_body(scoped->body.statements);
    } else if (std::holds_alternative<BreakStatement>(what)) {
      return Flow::break_loop;
    } else {
      return Flow::continue_loop;
    }
  } catch (TemplateError& error) {
    error.set_position(statement.position);
    throw;
  }
  return Flow::next;
}

TemplateInterpreter::Flow TemplateInterpreter::run_if(const IfStatement& statement) {
  for (const auto& [condition, body] : statement.branches) {
    if (evaluate(*condition).truth()) return run_body(body);
  }
  return run_body(statement.otherwise);
}

// All values are evaluated in the outer scope.
TemplateInterpreter::Flow TemplateInterpreter::run_with(const WithStatement& statement) {
  TemplateValues values;
  for (const auto& assignment : statement.assignments) {
    values.push_back(evaluate(*assignment.second));
  }
  const NewScope scope(*this, statement.body);
  for (size_t i = 0; i < values.size(); ++i) {
    assign(statement.assignments[i].first, std::move(values[i]));
  }
  return run_body(statement.body.statements);
}

// The target's value; a tuple for several targets.
TemplateValue TemplateInterpreter::value_of(const TemplateTarget& target) {
  if (target.parts.empty()) return evaluate_name(target.name);
  TemplateValues parts;
  for (const TemplateTarget& part : target.parts) parts.push_back(value_of(part));
  return TemplateValue::tuple(std::move(parts));
}

TemplateValues TemplateInterpreter::filtered(const ForStatement& loop, TemplateValues items) {
  if (loop.condition == nullptr) return items;
  TemplateValues kept;
  for (TemplateValue& item : items) {
    runtime_.step();
    const NewScope scope(*this);
    assign(loop.target, item);
    if (evaluate(*loop.condition).truth()) kept.push_back(value_of(loop.target));
  }
  return kept;
}

void TemplateInterpreter::run_for(const ForStatement& loop, TemplateValue iterable, int64_t depth) {
  const TemplateValues items = filtered(loop, to_items(runtime_, iterable));
  if (items.empty()) {
    const NewScope scope(*this, loop.otherwise);
    run_body(loop.otherwise.statements);
    return;
  }
  if (loop.is_recursive) scope_->keep();
  auto* const state = runtime_.make<LoopObject>(*this, loop, *scope_, items, depth);
  runtime_.charge_items(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    runtime_.step();
    state->set_index(i);
    const NewScope scope(*this, loop.body);
    scope_->set("loop", TemplateValue(state));
    assign(loop.target, items[i]);
    if (run_body(loop.body.statements) == Flow::break_loop) break;
  }
}

std::string TemplateInterpreter::run_loop(const ForStatement& loop, TemplateScope& scope,
                                          TemplateValue items, int64_t depth) {
  const auto call_depth = runtime_.nest();
  std::string text;
  const Switched capture(out_, &text);
  const Switched in_scope(scope_, &scope);
  run_for(loop, std::move(items), depth);
  return text;
}

void TemplateInterpreter::assign(const TemplateTarget& target, TemplateValue value) {
  if (!target.parts.empty()) {
    require_defined(value);
    TemplateValues items = to_items(runtime_, value);
    if (items.size() != target.parts.size()) {
      throw TemplateError(target.position, fmt::format("expected {} values to unpack, found {}",
                                                       target.parts.size(), items.size()));
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], std::move(items[i]));
    return;
  }
  if (target.attribute.empty()) return scope_->set(target.name, std::move(value));
  const TemplateValue owner = evaluate_name(target.name);
  auto* const space = owner.is_object() ? dynamic_cast<NamespaceObject*>(&owner.object()) : nullptr;
  if (space == nullptr) {
    throw TemplateError(target.position, "cannot assign attribute on non-namespace object");
  }
  space->set(target.attribute, std::move(value));
}

std::string TemplateInterpreter::captured(const ScopedBody& body) {
  std::string text;
  const Switched capture(out_, &text);
  const NewScope scope(*this, body);
  run_body(body.statements);
  return text;
}

void TemplateInterpreter::run_set_block(const SetBlockStatement& statement) {
  assign(statement.target,
         apply_suffixes(TemplateValue(captured(statement.body)), statement.filters));
}

void TemplateInterpreter::run_filter_block(const FilterStatement& statement) {
  const TemplateValue text =
      apply_suffixes(TemplateValue(captured(statement.body)), statement.filters);
  if (!text.is_string()) {
    throw TemplateError("a filter block must give a string, not {}", text.type_name());
  }
  print(text);
}

void TemplateInterpreter::run_call(const CallStatement& statement) {
  const auto& node = std::get<SuffixNode>(statement.call->node);
  TemplateArguments extra;
  extra.named.emplace_back(
      "caller", TemplateValue(runtime_.make<MacroObject>(*this, statement.caller, *scope_)));
  print(evaluate_suffixes(node, &extra));
}

}  // namespace paceline
