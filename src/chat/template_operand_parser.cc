// Operands: literals, names, lists, dicts, and expressions in brackets.
#include <fmt/format.h>

#include "chat/python_number.h"
#include "chat/template_expression_parser.h"
#include "chat/template_literal.h"

namespace paceline {
namespace {

using Kind = TemplateToken::Kind;

}  // namespace

ExpressionPtr TemplateExpressionParser::primary() {
  if (at(Kind::name)) return name_or_constant();
  if (at(Kind::integer) || at(Kind::floating)) return number();
  if (at(Kind::string)) return string();
  if (at_op("[")) return list();
  if (at_op("{")) return dict();
  if (!at_op("(")) unexpected("an expression");
  return in_brackets();
}

ExpressionPtr TemplateExpressionParser::name_or_constant() {
  for (const char* keyword : {"and", "or", "not", "in", "is", "if", "else"}) {
    if (at_name(keyword)) unexpected("an expression");
  }
  const TemplatePosition position = peek().position;
  std::string name = take().text;
  if (name == "true" || name == "True") return make(position, LiteralNode{TemplateValue(true)});
  if (name == "false" || name == "False") return make(position, LiteralNode{TemplateValue(false)});
  if (name == "none" || name == "None") return make(position, LiteralNode{TemplateValue()});
  if (name == "caller" || name == "varargs" || name == "kwargs") macro_specials.insert(name);
  names->known.insert(name);
  return make(position, NameNode{std::move(name)});
}

ExpressionPtr TemplateExpressionParser::number() {
  const TemplateToken token = take();
  if (token.kind == Kind::floating) {
    return make(token.position, LiteralNode{TemplateValue(parse_float(token.text).value_or(0))});
  }
  const auto value = integer_of_literal(token.text);
  if (!value) {
    fail(token.position, fmt::format("the integer {} is beyond 64 bits", token.text.substr(0, 40)));
  }
  return make(token.position, LiteralNode{TemplateValue(*value)});
}

// Joins adjacent strings: 'a' 'b' is 'ab'.
ExpressionPtr TemplateExpressionParser::string() {
  const TemplatePosition position = peek().position;
  std::string text;
  while (at(Kind::string)) text += take().text;
  return make(position, LiteralNode{TemplateValue(std::move(text))});
}

ExpressionPtr TemplateExpressionParser::list() {
  ListNode node;
  const TemplatePosition position = take().position;
  comma_separated("]", [&] { node.items.push_back(expression()); });
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::dict() {
  DictNode node;
  const TemplatePosition position = take().position;
  comma_separated("}", [&] {
    ExpressionPtr key = expression();
    expect_op(":");
    node.members.emplace_back(std::move(key), expression());
  });
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::in_brackets() {
  const TemplatePosition position = take().position;
  if (take_op(")")) return make(position, ListNode{.is_tuple = true});
  ExpressionPtr inner = tuple(Conditional::allowed);
  expect_op(")");
  return inner;
}

bool TemplateExpressionParser::at_end_of_tuple() const {
  return at(Kind::print_end) || at(Kind::block_end) || at_op(")") || at_name("recursive") ||
         at_name("if");
}

ExpressionPtr TemplateExpressionParser::tuple(Conditional conditional) {
  const TemplatePosition position = peek().position;
  const auto item = [&] {
    if (conditional == Conditional::allowed) return expression();
    const auto nesting = nest();
    return logical_or();
  };
  ExpressionPtr first = item();
  if (!at_op(",")) return first;
  ListNode node{.is_tuple = true};
  node.items.push_back(std::move(first));
  while (take_op(",")) {
    if (at_end_of_tuple()) break;
    node.items.push_back(item());
  }
  return make(position, std::move(node));
}

}  // namespace paceline
