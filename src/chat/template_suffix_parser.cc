// Suffixes of an operand: subscripts, calls, filters and tests.
#include "chat/template_expression_parser.h"

namespace paceline {
namespace {

using Kind = TemplateToken::Kind;

}  // namespace

ExpressionPtr TemplateExpressionParser::with_suffixes(ExpressionPtr base, Filters filters) {
  SuffixNode node;
  while (postfix(node.suffixes)) {
  }
  while (filters == Filters::allowed && filter_or_test(node.suffixes)) {
  }
  if (node.suffixes.empty()) return base;
  const TemplatePosition position = base->position;
  node.base = std::move(base);
  return make(position, std::move(node));
}

bool TemplateExpressionParser::postfix(std::vector<TemplateSuffix>& suffixes) {
  if (!at_op(".") && !at_op("[")) return call(suffixes);
  suffixes.push_back(subscript());
  return true;
}

bool TemplateExpressionParser::filter_or_test(std::vector<TemplateSuffix>& suffixes) {
  if (take_op("|")) {
    suffixes.push_back(filter());
  } else if (at_name("is")) {
    suffixes.push_back(test());
  } else {
    return call(suffixes);
  }
  return true;
}

bool TemplateExpressionParser::call(std::vector<TemplateSuffix>& suffixes) {
  if (!at_op("(")) return false;
  const TemplatePosition position = peek().position;
  suffixes.push_back({position, CallSuffix{arguments()}});
  return true;
}

TemplateSuffix TemplateExpressionParser::filter() {
  const TemplatePosition position = peek().position;
  FilterSuffix filter{.name = dotted_name()};
  if (at_op("(")) filter.arguments = arguments();
  return {position, std::move(filter)};
}

std::vector<TemplateSuffix> TemplateExpressionParser::filters() {
  std::vector<TemplateSuffix> found;
  while (take_op("|")) found.push_back(filter());
  return found;
}

std::vector<TemplateSuffix> TemplateExpressionParser::first_filter_and_rest() {
  std::vector<TemplateSuffix> found;
  do {
    found.push_back(filter());
  } while (take_op("|"));
  return found;
}

std::string TemplateExpressionParser::dotted_name() {
  std::string name = expect_identifier();
  while (take_op(".")) name += "." + expect_identifier();
  return name;
}

TemplateSuffix TemplateExpressionParser::test() {
  const TemplatePosition position = take().position;
  TestSuffix test;
  test.is_negated = take_name("not");
  test.name = dotted_name();
  if (at_op("(")) {
    test.arguments = arguments();
  } else if (at_name("is")) {
    fail(peek().position, "tests can't be chained with \"is\"");
  } else if (at_argument_of_test()) {
    test.arguments.positional.push_back(with_suffixes(primary(), Filters::not_allowed));
  }
  return {position, std::move(test)};
}

// "is divisibleby 3": one argument needs no brackets.
bool TemplateExpressionParser::at_argument_of_test() const {
  for (const char* keyword : {"else", "or", "and", "if", "in", "not"}) {
    if (at_name(keyword)) return false;
  }
  return at(Kind::name) || at(Kind::string) || at(Kind::integer) || at(Kind::floating) ||
         at_op("[") || at_op("{");
}

TemplateSuffix TemplateExpressionParser::subscript() {
  const TemplateToken token = take();
  if (token.text == ".") return attribute(token.position);
  const auto nesting = nest();
  ExpressionPtr first = slice_bound();
  if (at_op(":")) return slice(token.position, std::move(first));
  if (first == nullptr) unexpected("an expression");
  if (at_op(",")) {
    ListNode keys{.is_tuple = true};
    keys.items.push_back(std::move(first));
    while (take_op(",") && !at_op("]")) keys.items.push_back(expression());
    first = make(token.position, std::move(keys));
  }
  expect_op("]");
  return {token.position, ItemSuffix{std::move(first)}};
}

TemplateSuffix TemplateExpressionParser::attribute(TemplatePosition position) {
  if (at(Kind::integer)) return {position, ItemSuffix{number()}};
  return {position, AttributeSuffix{expect_identifier()}};
}

TemplateSuffix TemplateExpressionParser::slice(TemplatePosition position, ExpressionPtr start) {
  SliceSuffix slice{.start = std::move(start), .stop = nullptr, .step = nullptr};
  expect_op(":");
  slice.stop = slice_bound();
  if (take_op(":")) slice.step = slice_bound();
  expect_op("]");
  return {position, std::move(slice)};
}

// Null where none stands.
ExpressionPtr TemplateExpressionParser::slice_bound() {
  return at_op(":") || at_op("]") || at_op(",") ? nullptr : expression();
}

CallArguments TemplateExpressionParser::arguments() {
  const auto nesting = nest();
  expect_op("(");
  CallArguments arguments;
  comma_separated(")", [&] { argument(arguments); });
  return arguments;
}

void TemplateExpressionParser::argument(CallArguments& before) {
  const TemplatePosition position = peek().position;
  if (take_op("**")) {
    if (before.mapping != nullptr) fail(position, "** occurs twice");
    before.mapping = expression();
  } else if (take_op("*")) {
    if (before.mapping != nullptr || before.sequence != nullptr) {
      fail(position, "* occurs twice or after **");
    }
    before.sequence = expression();
  } else if (at(Kind::name) && is(peek(1), Kind::op, "=")) {
    if (before.mapping != nullptr) fail(position, "a named argument after **");
    std::string name = take().text;
    take();
    before.named.emplace_back(std::move(name), expression());
  } else {
    if (before.mapping != nullptr || before.sequence != nullptr || !before.named.empty()) {
      fail(position, "a positional argument after a named one");
    }
    before.positional.push_back(expression());
  }
}

}  // namespace paceline
