// The parser of expressions, used by the parser of statements.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/template_token_stream.h"
#include "chat/template_tree.h"

namespace paceline {

// Must agree with jinja2.parser in precedence and grammar. Operators, operands and their suffixes
// are a source file each.
class TemplateExpressionParser : public TemplateTokenStream {
 public:
  using TemplateTokenStream::TemplateTokenStream;

  ExpressionPtr expression();  // with a conditional
  // One expression, or a tuple of several with commas. A `for` stops before its `if`.
  enum class Conditional { allowed, not_allowed };
  ExpressionPtr tuple(Conditional conditional);
  // |filter|filter, any number.
  std::vector<TemplateSuffix> filters();
  // filter|filter: the first without a bar.
  std::vector<TemplateSuffix> first_filter_and_rest();

  // Those of caller, varargs and kwargs that the macro reads.
  std::set<std::string, std::less<>> macro_specials;
  // Of the body that is parsed.
  std::shared_ptr<BodyNames> names;

 private:
  using Parse = ExpressionPtr (TemplateExpressionParser::*)();
  template <class Operator>
  using Operators = std::initializer_list<std::pair<std::string_view, Operator>>;

  template <class Node>
  static ExpressionPtr make(TemplatePosition position, Node node) {
    return std::make_unique<TemplateExpression>(TemplateExpression{position, std::move(node)});
  }

  // Operators, from the loosest to the tightest.
  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr signed_operand();
  enum class Filters { allowed, not_allowed };
  ExpressionPtr unary(Filters filters);
  ExpressionPtr logical(LogicalOperator op, std::string_view word, Parse operand);
  ExpressionPtr arithmetic(Operators<BinaryOperator> operators, Parse operand);
  std::optional<CompareOperator> take_compare_operator();

  // Operands.
  ExpressionPtr primary();
  ExpressionPtr name_or_constant();
  ExpressionPtr number();
  ExpressionPtr string();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr in_brackets();
  bool at_end_of_tuple() const;

  // Suffixes of an operand: subscripts, calls, filters, tests.
  ExpressionPtr with_suffixes(ExpressionPtr base, Filters filters);
  bool postfix(std::vector<TemplateSuffix>& suffixes);
  bool filter_or_test(std::vector<TemplateSuffix>& suffixes);
  bool call(std::vector<TemplateSuffix>& suffixes);
  TemplateSuffix subscript();
  TemplateSuffix attribute(TemplatePosition position);
  TemplateSuffix slice(TemplatePosition position, ExpressionPtr start);
  ExpressionPtr slice_bound();
  TemplateSuffix filter();
  TemplateSuffix test();
  bool at_argument_of_test() const;
  CallArguments arguments();
  void argument(CallArguments& before);
  std::string dotted_name();
};

}  // namespace paceline
