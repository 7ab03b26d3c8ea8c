// The interpreter's expressions.
#include <fmt/format.h>

#include "chat/python_string.h"
#include "chat/template_arithmetic.h"
#include "chat/template_compare.h"
#include "chat/template_convert.h"
#include "chat/template_filters.h"
#include "chat/template_globals.h"
#include "chat/template_interpreter.h"
#include "chat/template_methods.h"
#include "chat/template_tests.h"

namespace paceline {
TemplateValue TemplateInterpreter::evaluate(const TemplateExpression& expression) {
  runtime_.step();
  try {
    return std::visit(
        Overloaded{
            [](const LiteralNode& node) { return node.value; },
            [&](const NameNode& node) { return evaluate_name(node.name); },
            [&](const ListNode& node) {
              TemplateValues items;
              for (const auto& item : node.items) items.push_back(evaluate(*item));
              runtime_.charge_items(items.size());
              return node.is_tuple ? TemplateValue::tuple(std::move(items))
                                   : TemplateValue::list(std::move(items));
            },
            [&](const DictNode& node) {
              TemplateMapping members;
              for (const auto& [key, value] : node.members) {
                TemplateValue made = evaluate(*key);
                members.set(std::move(made), evaluate(*value));
              }
              runtime_.charge_items(2 * node.members.size());
              return TemplateValue::mapping(std::move(members));
            },
            [&](const UnaryNode& node) {
              TemplateValue value = evaluate(*node.operand);
              if (node.op == UnaryOperator::logical_not) return TemplateValue(!value.truth());
              if (node.op == UnaryOperator::minus) return negated(value);
              return negated(negated(value));
            },
            [&](const ArithmeticNode& node) {
              TemplateValue value = evaluate(*node.first);
              for (const auto& [op, operand] : node.rest) {
                value = arithmetic(runtime_, op, value, evaluate(*operand));
              }
              return value;
            },
            [&](const ConcatNode& node) {
              std::string text;
              for (const auto& part : node.parts) text += to_text(runtime_, evaluate(*part));
              return TemplateValue(std::move(text));
            },
            [&](const CompareNode& node) { return evaluate_comparison(node); },
            [&](const LogicalNode& node) {
              const bool goes_on_with = node.op == LogicalOperator::logical_and;
              TemplateValue value;
              for (const auto& operand : node.operands) {
                value = evaluate(*operand);
                if (value.truth() != goes_on_with) break;
              }
              return value;
            },
            [&](const ConditionalNode& node) {
              if (evaluate(*node.condition).truth()) return evaluate(*node.yes);
              if (node.no != nullptr) return evaluate(*node.no);
              return TemplateValue::undefined(
                  "the inline if-expression evaluated to false and no else section was defined.");
            },
            [&](const SuffixNode& node) { return evaluate_suffixes(node, nullptr); },
        },
        expression.node);
  } catch (TemplateError& error) {
    error.set_position(expression.position);
    throw;
  }
}

TemplateValue TemplateInterpreter::evaluate_name(const std::string& name) {
  if (const TemplateValue* found = scope_->find(name)) return *found;
  if (auto global = find_global(runtime_, name)) return std::move(*global);
  return TemplateValue::undefined(fmt::format("'{}' is undefined", name));
}

TemplateValue TemplateInterpreter::evaluate_comparison(const CompareNode& node) {
  TemplateValue left = evaluate(*node.first);
  for (const auto& [op, operand] : node.rest) {
    TemplateValue right = evaluate(*operand);
    if (!compare(op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

TemplateValue TemplateInterpreter::apply_suffixes(TemplateValue value,
                                                  const std::vector<TemplateSuffix>& suffixes) {
  for (const TemplateSuffix& suffix : suffixes) value = apply_suffix(value, suffix);
  return value;
}

// `extra_arguments` join those of the last call.
TemplateValue TemplateInterpreter::evaluate_suffixes(const SuffixNode& node,
                                                     TemplateArguments* extra_arguments) {
  TemplateValue value = evaluate(*node.base);
  for (size_t i = 0; i < node.suffixes.size(); ++i) {
    const TemplateSuffix& suffix = node.suffixes[i];
    const auto* attribute = std::get_if<AttributeSuffix>(&suffix.what);
    const auto* next = i + 1 < node.suffixes.size()
                           ? std::get_if<CallSuffix>(&node.suffixes[i + 1].what)
                           : nullptr;
    const bool is_last_call = extra_arguments != nullptr && i + 1 == node.suffixes.size();
    runtime_.step();
    try {
      if (attribute != nullptr && next != nullptr && has_method(value, attribute->name)) {
        // A method that is called at once needs no object of its own.
        value = call_method(runtime_, value, attribute->name, evaluate_arguments(next->arguments));
        ++i;
      } else if (is_last_call) {
        TemplateArguments arguments =
            evaluate_arguments(std::get<CallSuffix>(suffix.what).arguments);
        for (auto& extra : extra_arguments->named) arguments.named.push_back(std::move(extra));
        value = call(value, std::move(arguments));
      } else {
        value = apply_suffix(value, suffix);
      }
    } catch (TemplateError& error) {
      error.set_position(suffix.position);
      throw;
    }
  }
  return value;
}

TemplateValue TemplateInterpreter::apply_suffix(const TemplateValue& value,
                                                const TemplateSuffix& suffix) {
  return std::visit(
      Overloaded{
          [&](const AttributeSuffix& of) { return attribute_of(runtime_, value, of.name); },
          [&](const ItemSuffix& of) {
            require_defined(value);
            return item_of(runtime_, value, evaluate(*of.key));
          },
          [&](const SliceSuffix& of) { return evaluate_slice(value, of); },
          [&](const CallSuffix& of) {
            require_defined(value);
            return call(value, evaluate_arguments(of.arguments));
          },
          [&](const FilterSuffix& of) {
            return apply_filter(runtime_, of.name, value, evaluate_arguments(of.arguments));
          },
          [&](const TestSuffix& of) {
            const bool passes =
                apply_test(runtime_, of.name, value, evaluate_arguments(of.arguments));
            return TemplateValue(passes != of.is_negated);
          },
      },
      suffix.what);
}

TemplateValue TemplateInterpreter::evaluate_slice(const TemplateValue& value,
                                                  const SliceSuffix& node) {
  require_defined(value);
  const auto bound = [&](const ExpressionPtr& part) -> std::optional<int64_t> {
    if (part == nullptr) return std::nullopt;
    const TemplateValue index = evaluate(*part);
    if (index.is_none()) return std::nullopt;
    require_defined(index);
    if (!index.is_integral()) throw TemplateError("slice indices must be integers or None");
    return index.integer();
  };
  const auto start = bound(node.start);
  const auto stop = bound(node.stop);
  const auto step = bound(node.step);
  const auto length = length_if_any(value);
  if (!length || value.is_mapping()) {
    throw TemplateError("'{}' object is not subscriptable by a slice", value.type_name());
  }
  const auto indices = indices_of({.has_start = start.has_value(),
                                   .has_stop = stop.has_value(),
                                   .start = start.value_or(0),
                                   .stop = stop.value_or(0),
                                   .step = step.value_or(1)},
                                  *length);
  runtime_.step(indices.size() / 16);
  if (value.is_string()) {
    const auto characters = characters_of(value.text());
    std::string text;
    for (const size_t index : indices) text += characters[index];
    return runtime_.text(std::move(text));
  }
  TemplateValues items;
  runtime_.charge_items(indices.size());
  for (const size_t index : indices) items.push_back(value.items()[index]);
  return value.is_tuple() ? TemplateValue::tuple(std::move(items))
                          : TemplateValue::list(std::move(items));
}

TemplateArguments TemplateInterpreter::evaluate_arguments(const CallArguments& node) {
  TemplateArguments arguments;
  for (const auto& argument : node.positional) arguments.positional.push_back(evaluate(*argument));
  if (node.sequence != nullptr) {
    for (TemplateValue& item : to_items(runtime_, evaluate(*node.sequence))) {
      arguments.positional.push_back(std::move(item));
    }
  }
  for (const auto& [name, value] : node.named) arguments.named.emplace_back(name, evaluate(*value));
  if (node.mapping != nullptr) {
    const TemplateValue mapping = evaluate(*node.mapping);
    require_defined(mapping);
    if (!mapping.is_mapping()) {
      throw TemplateError("argument after ** must be a mapping, not {}", mapping.type_name());
    }
    for (const auto& [key, value] : mapping.members().members()) {
      if (!key.is_string()) throw TemplateError("keywords must be strings");
      arguments.named.emplace_back(key.text(), value);
    }
  }
  return arguments;
}

TemplateValue TemplateInterpreter::call(const TemplateValue& callee, TemplateArguments arguments) {
  require_defined(callee);
  if (!callee.is_object()) throw TemplateError("'{}' object is not callable", callee.type_name());
  return callee.object().call(std::move(arguments));
}

}  // namespace paceline
