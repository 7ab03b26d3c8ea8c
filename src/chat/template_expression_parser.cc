// Operators, by their precedence.
#include "chat/template_expression_parser.h"

namespace paceline {
namespace {

using Op = BinaryOperator;

}  // namespace

ExpressionPtr TemplateExpressionParser::expression() {
  const auto nesting = nest();
  const TemplatePosition position = peek().position;
  ExpressionPtr value = logical_or();
  while (take_name("if")) {
    ConditionalNode node;
    node.condition = logical_or();
    node.yes = std::move(value);
    if (take_name("else")) node.no = expression();
    value = make(position, std::move(node));
  }
  return value;
}

// operand {WORD operand}
ExpressionPtr TemplateExpressionParser::logical(LogicalOperator op, std::string_view word,
                                                Parse operand) {
  const TemplatePosition position = peek().position;
  ExpressionPtr first = (this->*operand)();
  if (!at_name(word)) return first;
  LogicalNode node{.op = op};
  node.operands.push_back(std::move(first));
  while (take_name(word)) node.operands.push_back((this->*operand)());
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::logical_or() {
  return logical(LogicalOperator::logical_or, "or", &TemplateExpressionParser::logical_and);
}

ExpressionPtr TemplateExpressionParser::logical_and() {
  return logical(LogicalOperator::logical_and, "and", &TemplateExpressionParser::logical_not);
}

ExpressionPtr TemplateExpressionParser::logical_not() {
  const TemplatePosition position = peek().position;
  if (!take_name("not")) return comparison();
  const auto nesting = nest();
  return make(position, UnaryNode{UnaryOperator::logical_not, logical_not()});
}

std::optional<CompareOperator> TemplateExpressionParser::take_compare_operator() {
  static constexpr std::pair<std::string_view, CompareOperator> kOperators[] = {
      {"==", CompareOperator::eq}, {"!=", CompareOperator::ne}, {"<=", CompareOperator::le},
      {"<", CompareOperator::lt},  {">=", CompareOperator::ge}, {">", CompareOperator::gt}};
  for (const auto& [text, op] : kOperators) {
    if (take_op(text)) return op;
  }
  if (take_name("in")) return CompareOperator::in;
  if (!at_name("not") || !is(peek(1), TemplateToken::Kind::name, "in")) return std::nullopt;
  take();
  take();
  return CompareOperator::not_in;
}

ExpressionPtr TemplateExpressionParser::comparison() {
  const TemplatePosition position = peek().position;
  ExpressionPtr first = sum();
  CompareNode node;
  while (const auto op = take_compare_operator()) node.rest.emplace_back(*op, sum());
  if (node.rest.empty()) return first;
  node.first = std::move(first);
  return make(position, std::move(node));
}

// operand {OPERATOR operand}
ExpressionPtr TemplateExpressionParser::arithmetic(Operators<BinaryOperator> operators,
                                                   Parse operand) {
  const TemplatePosition position = peek().position;
  const auto take_operator = [&]() -> std::optional<Op> {
    for (const auto& [text, op] : operators) {
      if (take_op(text)) return op;
    }
    return std::nullopt;
  };
  ExpressionPtr first = (this->*operand)();
  ArithmeticNode node;
  while (const auto op = take_operator()) node.rest.emplace_back(*op, (this->*operand)());
  if (node.rest.empty()) return first;
  node.first = std::move(first);
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::sum() {
  return arithmetic({{"+", Op::add}, {"-", Op::subtract}},
                    &TemplateExpressionParser::concatenation);
}

ExpressionPtr TemplateExpressionParser::concatenation() {
  const TemplatePosition position = peek().position;
  ExpressionPtr first = product();
  if (!at_op("~")) return first;
  ConcatNode node;
  node.parts.push_back(std::move(first));
  while (take_op("~")) node.parts.push_back(product());
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::product() {
  return arithmetic(
      {{"*", Op::multiply}, {"/", Op::divide}, {"//", Op::floor_divide}, {"%", Op::modulo}},
      &TemplateExpressionParser::power);
}

ExpressionPtr TemplateExpressionParser::power() {
  return arithmetic({{"**", Op::power}}, &TemplateExpressionParser::signed_operand);
}

ExpressionPtr TemplateExpressionParser::signed_operand() { return unary(Filters::allowed); }

ExpressionPtr TemplateExpressionParser::unary(Filters filters) {
  const TemplatePosition position = peek().position;
  if (!at_op("-") && !at_op("+")) return with_suffixes(primary(), filters);
  const auto nesting = nest();
  const UnaryOperator op = take().text == "-" ? UnaryOperator::minus : UnaryOperator::plus;
  return with_suffixes(make(position, UnaryNode{op, unary(Filters::not_allowed)}), filters);
}

}  // namespace paceline
