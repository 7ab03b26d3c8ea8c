#include "chat/template_expression_parser.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "chat/template_parser.h"

namespace paceline {
namespace {

using Kind = TemplateToken::Kind;
using Op = BinaryOperator;

std::string described(const TemplateToken& token) {
  switch (token.kind) {
    case Kind::text:
      return "text";
    case Kind::print_begin:
      return "{{";
    case Kind::print_end:
      return "}}";
    case Kind::block_begin:
      return "{%";
    case Kind::block_end:
      return "%}";
    case Kind::string:
      return "a string";
    case Kind::end:
      return "the end of the template";
    default:
      return fmt::format("\"{}\"", token.text.substr(0, 40));
  }
}

}  // namespace

TemplateExpressionParser::Nesting::Nesting(TemplateExpressionParser& parser) : parser_(parser) {
  if (parser.nesting_ >= kMaxTemplateNesting) {
    throw TemplateError(parser.peek().position,
                        fmt::format("nested deeper than {} levels", kMaxTemplateNesting),
                        ErrorCode::exhausted);
  }
  ++parser.nesting_;
}

TemplateToken TemplateExpressionParser::take() {
  TemplateToken token = peek();
  if (next_ + 1 < tokens_.size()) ++next_;
  return token;
}

bool TemplateExpressionParser::take_op(std::string_view op) {
  if (!at_op(op)) return false;
  take();
  return true;
}

bool TemplateExpressionParser::take_name(std::string_view name) {
  if (!at_name(name)) return false;
  take();
  return true;
}

void TemplateExpressionParser::expect_op(std::string_view op) {
  if (!take_op(op)) unexpected(fmt::format("\"{}\"", op));
}

std::string TemplateExpressionParser::expect_identifier() {
  if (peek().kind != Kind::name) unexpected("a name");
  return take().text;
}

void TemplateExpressionParser::fail(const TemplatePosition& position,
                                    const std::string& message) const {
  throw TemplateError(position, message);
}

void TemplateExpressionParser::unexpected(std::string_view what) const {
  fail(peek().position, fmt::format("expected {}, found {}", what, described(peek())));
}

ExpressionPtr TemplateExpressionParser::expression_without_conditional() {
  const Nesting nesting(*this);
  return logical_or();
}

ExpressionPtr TemplateExpressionParser::expression() {
  const Nesting nesting(*this);
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

ExpressionPtr TemplateExpressionParser::logical_or() {
  const TemplatePosition position = peek().position;
  ExpressionPtr first = logical_and();
  if (!at_name("or")) return first;
  LogicalNode node{.is_and = false, .operands = {}};
  node.operands.push_back(std::move(first));
  while (take_name("or")) node.operands.push_back(logical_and());
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::logical_and() {
  const TemplatePosition position = peek().position;
  ExpressionPtr first = logical_not();
  if (!at_name("and")) return first;
  LogicalNode node{.is_and = true, .operands = {}};
  node.operands.push_back(std::move(first));
  while (take_name("and")) node.operands.push_back(logical_not());
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::logical_not() {
  const TemplatePosition position = peek().position;
  if (!take_name("not")) return comparison();
  const Nesting nesting(*this);
  return make(position, UnaryNode{UnaryOperator::logical_not, logical_not()});
}

ExpressionPtr TemplateExpressionParser::comparison() {
  static constexpr std::array<std::pair<std::string_view, CompareOperator>, 6> kOperators = {
      std::pair{std::string_view("=="), CompareOperator::eq},
      std::pair{std::string_view("!="), CompareOperator::ne},
      std::pair{std::string_view("<="), CompareOperator::le},
      std::pair{std::string_view("<"), CompareOperator::lt},
      std::pair{std::string_view(">="), CompareOperator::ge},
      std::pair{std::string_view(">"), CompareOperator::gt}};
  const TemplatePosition position = peek().position;
  ExpressionPtr first = sum();
  CompareNode node;
  while (true) {
    bool found = false;
    for (const auto& [text, op] : kOperators) {
      if (!take_op(text)) continue;
      node.rest.emplace_back(op, sum());
      found = true;
      break;
    }
    if (found) continue;
    if (take_name("in")) {
      node.rest.emplace_back(CompareOperator::in, sum());
    } else if (at_name("not") && is(peek(1), Kind::name, "in")) {
      take();
      take();
      node.rest.emplace_back(CompareOperator::not_in, sum());
    } else {
      break;
    }
  }
  if (node.rest.empty()) return first;
  node.first = std::move(first);
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::sum() {
  const TemplatePosition position = peek().position;
  ExpressionPtr first = concatenation();
  if (!at_op("+") && !at_op("-")) return first;
  ArithmeticNode node{.first = std::move(first), .rest = {}};
  while (at_op("+") || at_op("-")) {
    const Op op = take().text == "+" ? Op::add : Op::subtract;
    node.rest.emplace_back(op, concatenation());
  }
  return make(position, std::move(node));
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
  static constexpr std::array<std::pair<std::string_view, Op>, 4> kOperators = {
      std::pair{std::string_view("*"), Op::multiply}, std::pair{std::string_view("/"), Op::divide},
      std::pair{std::string_view("//"), Op::floor_divide},
      std::pair{std::string_view("%"), Op::modulo}};
  const TemplatePosition position = peek().position;
  ExpressionPtr first = power();
  ArithmeticNode node;
  bool found = true;
  while (found) {
    found = false;
    for (const auto& [text, op] : kOperators) {
      if (!take_op(text)) continue;
      node.rest.emplace_back(op, power());
      found = true;
      break;
    }
  }
  if (node.rest.empty()) return first;
  node.first = std::move(first);
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::power() {
  const TemplatePosition position = peek().position;
  ExpressionPtr first = unary(Filters::allowed);
  if (!at_op("**")) return first;
  ArithmeticNode node{.first = std::move(first), .rest = {}};
  while (take_op("**")) node.rest.emplace_back(Op::power, unary(Filters::allowed));
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::unary(Filters filters) {
  const TemplatePosition position = peek().position;
  if (!at_op("-") && !at_op("+")) return with_suffixes(primary(), filters);
  const Nesting nesting(*this);
  const UnaryOperator op = take().text == "-" ? UnaryOperator::minus : UnaryOperator::plus;
  return with_suffixes(make(position, UnaryNode{op, unary(Filters::not_allowed)}), filters);
}

ExpressionPtr TemplateExpressionParser::primary() {
  const TemplateToken& token = peek();
  if (token.kind == Kind::name) return name_or_constant();
  if (token.kind == Kind::integer || token.kind == Kind::floating) return number();
  if (token.kind == Kind::string) {
    const TemplatePosition position = token.position;
    std::string text;
    while (peek().kind == Kind::string) text += take().text;
    return make(position, LiteralNode{TemplateValue(std::move(text))});
  }
  if (at_op("[")) return list();
  if (at_op("{")) return dict();
  if (!at_op("(")) unexpected("an expression");
  const TemplatePosition position = take().position;
  if (take_op(")")) return make(position, ListNode{.items = {}, .is_tuple = true});
  ExpressionPtr inner = tuple(Conditional::allowed);
  expect_op(")");
  return inner;
}

ExpressionPtr TemplateExpressionParser::name_or_constant() {
  static constexpr std::array<std::string_view, 6> kOperatorNames = {"and", "or", "not",
                                                                     "in",  "is", "if"};
  const TemplatePosition position = peek().position;
  for (const std::string_view keyword : kOperatorNames) {
    if (at_name(keyword)) unexpected("an expression");
  }
  if (at_name("else")) unexpected("an expression");
  std::string name = take().text;
  if (name == "true" || name == "True") return make(position, LiteralNode{TemplateValue(true)});
  if (name == "false" || name == "False") return make(position, LiteralNode{TemplateValue(false)});
  if (name == "none" || name == "None") return make(position, LiteralNode{TemplateValue()});
  if (name == "caller") macro_names.caller = true;
  if (name == "varargs") macro_names.varargs = true;
  if (name == "kwargs") macro_names.kwargs = true;
  return make(position, NameNode{std::move(name)});
}

ExpressionPtr TemplateExpressionParser::number() {
  const TemplateToken token = take();
  const char* begin = token.text.data();
  const char* const end = begin + token.text.size();
  if (token.kind == Kind::floating) {
    double value = 0;
    std::from_chars(begin, end, value);
    return make(token.position, LiteralNode{TemplateValue(value)});
  }
  int base = 10;
  if (token.text.size() > 2 && token.text[0] == '0') {
    const char mark = static_cast<char>(token.text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
    if (base != 10) begin += 2;
  }
  int64_t value = 0;
  if (std::from_chars(begin, end, value, base).ec != std::errc()) {
    fail(token.position, fmt::format("the integer {} is beyond 64 bits", token.text.substr(0, 40)));
  }
  return make(token.position, LiteralNode{TemplateValue(value)});
}

ExpressionPtr TemplateExpressionParser::list() {
  ListNode node;
  const TemplatePosition position = take().position;
  while (!at_op("]")) {
    if (!node.items.empty()) expect_op(",");
    if (at_op("]")) break;
    node.items.push_back(expression());
  }
  expect_op("]");
  return make(position, std::move(node));
}

ExpressionPtr TemplateExpressionParser::dict() {
  DictNode node;
  const TemplatePosition position = take().position;
  while (!at_op("}")) {
    if (!node.members.empty()) expect_op(",");
    if (at_op("}")) break;
    ExpressionPtr key = expression();
    expect_op(":");
    node.members.emplace_back(std::move(key), expression());
  }
  expect_op("}");
  return make(position, std::move(node));
}

bool TemplateExpressionParser::at_end_of_tuple() const {
  return peek().kind == Kind::print_end || peek().kind == Kind::block_end || at_op(")") ||
         at_name("recursive") || at_name("if");
}

ExpressionPtr TemplateExpressionParser::tuple(Conditional conditional) {
  const TemplatePosition position = peek().position;
  const auto item = [&] {
    return conditional == Conditional::allowed ? expression() : expression_without_conditional();
  };
  ExpressionPtr first = item();
  if (!at_op(",")) return first;
  ListNode node{.items = {}, .is_tuple = true};
  node.items.push_back(std::move(first));
  while (take_op(",")) {
    if (at_end_of_tuple()) break;
    node.items.push_back(item());
  }
  return make(position, std::move(node));
}

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
  if (at_op(".") || at_op("[")) {
    suffixes.push_back(subscript());
  } else if (at_op("(")) {
    const TemplatePosition position = peek().position;
    suffixes.push_back({position, CallSuffix{arguments()}});
  } else {
    return false;
  }
  return true;
}

bool TemplateExpressionParser::filter_or_test(std::vector<TemplateSuffix>& suffixes) {
  if (at_op("|")) {
    for (TemplateSuffix& filter : filters()) suffixes.push_back(std::move(filter));
  } else if (at_name("is")) {
    suffixes.push_back(test());
  } else if (at_op("(")) {
    const TemplatePosition position = peek().position;
    suffixes.push_back({position, CallSuffix{arguments()}});
  } else {
    return false;
  }
  return true;
}

TemplateSuffix TemplateExpressionParser::filter() {
  const TemplatePosition position = peek().position;
  FilterSuffix filter{.name = dotted_name(), .arguments = {}};
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
  found.push_back(filter());
  for (TemplateSuffix& more : filters()) found.push_back(std::move(more));
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
  const TemplateToken& token = peek();
  const bool is_value = token.kind == Kind::name || token.kind == Kind::string ||
                        token.kind == Kind::integer || token.kind == Kind::floating || at_op("[") ||
                        at_op("{");
  const bool is_keyword = at_name("else") || at_name("or") || at_name("and") || at_name("if") ||
                          at_name("in") || at_name("not");
  if (at_op("(")) {
    test.arguments = arguments();
  } else if (is_value && at_name("is")) {
    fail(token.position, "tests can't be chained with \"is\"");
  } else if (is_value && !is_keyword) {
    test.arguments.positional.push_back(with_suffixes(primary(), Filters::not_allowed));
  }
  return {position, std::move(test)};
}

TemplateSuffix TemplateExpressionParser::subscript() {
  const TemplateToken token = take();
  if (token.text == ".") {
    if (peek().kind == Kind::integer) return {token.position, ItemSuffix{number()}};
    return {token.position, AttributeSuffix{expect_identifier()}};
  }
  const Nesting nesting(*this);
  const auto part = [&]() -> ExpressionPtr {
    return at_op(":") || at_op("]") || at_op(",") ? nullptr : expression();
  };
  ExpressionPtr first = part();
  if (at_op(":")) {
    SliceSuffix slice{.start = std::move(first), .stop = nullptr, .step = nullptr};
    take();
    slice.stop = part();
    if (take_op(":")) slice.step = part();
    expect_op("]");
    return {token.position, std::move(slice)};
  }
  if (first == nullptr) unexpected("an expression");
  if (at_op(",")) {
    ListNode keys{.items = {}, .is_tuple = true};
    keys.items.push_back(std::move(first));
    while (take_op(",") && !at_op("]")) keys.items.push_back(expression());
    first = make(token.position, std::move(keys));
  }
  expect_op("]");
  return {token.position, ItemSuffix{std::move(first)}};
}

CallArguments TemplateExpressionParser::arguments() {
  const Nesting nesting(*this);
  expect_op("(");
  CallArguments arguments;
  bool is_first = true;
  while (!at_op(")")) {
    if (!is_first) expect_op(",");
    is_first = false;
    if (at_op(")")) break;
    const TemplatePosition position = peek().position;
    const bool only_mapping = arguments.mapping != nullptr;
    if (take_op("**")) {
      if (only_mapping) fail(position, "** stands twice");
      arguments.mapping = expression();
    } else if (take_op("*")) {
      if (only_mapping || arguments.sequence != nullptr)
        fail(position, "* stands twice or behind **");
      arguments.sequence = expression();
    } else if (peek().kind == Kind::name && is(peek(1), Kind::op, "=")) {
      if (only_mapping) fail(position, "a named argument behind **");
      std::string name = take().text;
      take();
      arguments.named.emplace_back(std::move(name), expression());
    } else {
      if (only_mapping || arguments.sequence != nullptr || !arguments.named.empty()) {
        fail(position, "a positional argument behind a named one");
      }
      arguments.positional.push_back(expression());
    }
  }
  expect_op(")");
  return arguments;
}

TemplateTarget TemplateExpressionParser::single_target(Namespaces namespaces) {
  const TemplatePosition position = peek().position;
  if (take_op("(")) {
    const Nesting nesting(*this);
    TemplateTarget inner = target(namespaces);
    expect_op(")");
    return inner;
  }
  TemplateTarget target{.position = position, .name = expect_identifier()};
  if (target.name == "true" || target.name == "false" || target.name == "none" ||
      target.name == "True" || target.name == "False" || target.name == "None") {
    fail(position, fmt::format("can't assign to {}", target.name));
  }
  if (namespaces == Namespaces::allowed && take_op(".")) target.attribute = expect_identifier();
  return target;
}

TemplateTarget TemplateExpressionParser::target(Namespaces namespaces) {
  const TemplatePosition position = peek().position;
  TemplateTarget first = single_target(namespaces);
  if (!at_op(",")) return first;
  TemplateTarget all{.position = position};
  all.parts.push_back(std::move(first));
  while (take_op(",")) {
    if (at_op("=") || at_name("in") || at_op(")")) break;
    all.parts.push_back(single_target(namespaces));
  }
  return all;
}

}  // namespace paceline
