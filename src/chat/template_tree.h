// The tree of a parsed template.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chat/template_error.h"
#include "chat/template_value.h"

namespace paceline {

// Several lambdas as one function, for std::visit.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// Chains (a + b + c, x.y.z|f|g) are one node with a list, so that the tree's depth is bounded by
// the parser's limit for templates of any length.
struct TemplateExpression;
using ExpressionPtr = std::unique_ptr<TemplateExpression>;

struct LiteralNode {
  TemplateValue value;
};
struct NameNode {
  std::string name;
};
struct ListNode {
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
};
struct DictNode {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> members;
};
enum class UnaryOperator : uint8_t { logical_not, minus, plus };
struct UnaryNode {
  UnaryOperator op;
  ExpressionPtr operand;
};
enum class BinaryOperator : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power
};
struct ArithmeticNode {  // of one precedence, from the left
  ExpressionPtr first;
  std::vector<std::pair<BinaryOperator, ExpressionPtr>> rest;
};
struct ConcatNode {  // a ~ b ~ c
  std::vector<ExpressionPtr> parts;
};
enum class CompareOperator : uint8_t { eq, ne, lt, le, gt, ge, in, not_in };
struct CompareNode {  // a < b < c: each operand is computed once
  ExpressionPtr first;
  std::vector<std::pair<CompareOperator, ExpressionPtr>> rest;
};
enum class LogicalOperator : uint8_t { logical_or, logical_and };
struct LogicalNode {  // a or b or c
  LogicalOperator op;
  std::vector<ExpressionPtr> operands;
};
struct ConditionalNode {
  ExpressionPtr condition;
  ExpressionPtr yes;
  ExpressionPtr no;  // may be null
};

struct CallArguments {
  std::vector<ExpressionPtr> positional = {};
  std::vector<std::pair<std::string, ExpressionPtr>> named = {};
  ExpressionPtr sequence = {};  // *x; may be null
  ExpressionPtr mapping = {};   // **x; may be null
};

struct AttributeSuffix {
  std::string name;
};
struct ItemSuffix {
  ExpressionPtr key;
};
struct SliceSuffix {  // each may be null
  ExpressionPtr start, stop, step;
};
struct CallSuffix {
  CallArguments arguments;
};
struct FilterSuffix {
  std::string name;
  CallArguments arguments;
};
struct TestSuffix {
  std::string name;
  CallArguments arguments;
  bool is_negated = false;
};
struct TemplateSuffix {
  TemplatePosition position;
  std::variant<AttributeSuffix, ItemSuffix, SliceSuffix, CallSuffix, FilterSuffix, TestSuffix> what;
};
struct SuffixNode {
  ExpressionPtr base;  // null in a filter block: the block's text
  std::vector<TemplateSuffix> suffixes;
};

struct TemplateExpression {
  TemplatePosition position;
  std::variant<LiteralNode, NameNode, ListNode, DictNode, UnaryNode, ArithmeticNode, ConcatNode,
               CompareNode, LogicalNode, ConditionalNode, SuffixNode>
      node;
};

// The target of an assignment: a name, an attribute of a namespace, or several targets.
struct TemplateTarget {
  TemplatePosition position;
  std::string name = {};
  std::string attribute = {};  // not empty: of the namespace `name`
  std::vector<TemplateTarget> parts = {};
};

struct TemplateStatement;
using TemplateBody = std::vector<std::unique_ptr<TemplateStatement>>;

// The names in a body with variables of its own, and those of them that it hides. Jinja compiles a
// body that sets x to a function with a local x. A nested body that reads x sees the local one,
// even before it is set and even if there is an outer x:
//   {% for m in messages %}{{ x }}{% endfor %}{% set x = 1 %}
// prints nothing. The exceptions: the body itself reads x first, or sets it under an `if`. Must
// agree with jinja2.idtracking.
struct BodyNames {
  std::shared_ptr<const BodyNames> around = {};  // of the body that this one is nested in
  std::set<std::string, std::less<>> known = {};
  std::vector<std::string> hidden = {};  // undefined until they are set

  void set(const std::string& name) {
    if (known.insert(name).second) hidden.push_back(name);
  }
  // Called once all bodies are parsed: a name that is known around isn't hidden.
  void finish() {
    for (const BodyNames* outer = around.get(); outer != nullptr; outer = outer->around.get()) {
      std::erase_if(hidden, [&](const std::string& name) { return outer->known.contains(name); });
    }
  }
};

struct ScopedBody {
  std::shared_ptr<BodyNames> names;
  TemplateBody statements = {};
};

struct MacroDefinition {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  ScopedBody body;
  std::set<std::string, std::less<>> specials = {};  // caller, varargs, kwargs: those it reads
};

struct TextStatement {
  std::string text;
};
struct PrintStatement {
  ExpressionPtr value;
};
struct IfStatement {
  std::vector<std::pair<ExpressionPtr, TemplateBody>> branches;
  TemplateBody otherwise;
};
struct ForStatement {
  TemplateTarget target;
  ExpressionPtr items;
  ExpressionPtr condition;  // may be null
  ScopedBody body;
  ScopedBody otherwise;
  bool is_recursive = false;
};
struct SetStatement {
  TemplateTarget target;
  ExpressionPtr value;
};
struct SetBlockStatement {
  TemplateTarget target;
  std::vector<TemplateSuffix> filters;
  ScopedBody body;
};
struct MacroStatement {
  MacroDefinition macro;
};
struct CallStatement {
  MacroDefinition caller;
  ExpressionPtr call;
};
struct FilterStatement {
  std::vector<TemplateSuffix> filters;
  ScopedBody body;
};
struct WithStatement {
  std::vector<std::pair<TemplateTarget, ExpressionPtr>> assignments;
  ScopedBody body;
};
struct ScopeStatement {  // {% generation %}
  ScopedBody body;
};
struct BreakStatement {};
struct ContinueStatement {};

struct TemplateStatement {
  TemplatePosition position;
  std::variant<TextStatement, PrintStatement, IfStatement, ForStatement, SetStatement,
               SetBlockStatement, MacroStatement, CallStatement, FilterStatement, WithStatement,
               ScopeStatement, BreakStatement, ContinueStatement>
      what;
};

// Parses a template's source. Throws TemplateError with the position of the error.
ScopedBody parse_template(std::string_view source);

}  // namespace paceline
