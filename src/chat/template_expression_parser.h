// The parser of expressions; the statements' parser stands on it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/template_lexer.h"
#include "chat/template_tree.h"

namespace paceline {

// Must agree with jinja2.parser in precedence and grammar.
class TemplateExpressionParser {
 public:
  explicit TemplateExpressionParser(std::vector<TemplateToken> tokens)
      : tokens_(std::move(tokens)) {}

  // The token stream. The last token is `end`, and stays.
  const TemplateToken& peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  TemplateToken take();
  bool at_op(std::string_view op) const { return is(peek(), TemplateToken::Kind::op, op); }
  bool at_name(std::string_view name) const { return is(peek(), TemplateToken::Kind::name, name); }
  bool take_op(std::string_view op);
  bool take_name(std::string_view name);
  void expect_op(std::string_view op);
  std::string expect_identifier();
  [[noreturn]] void fail(const TemplatePosition& position, const std::string& message) const;
  // "expected WHAT, found TOKEN"
  [[noreturn]] void unexpected(std::string_view what) const;

  ExpressionPtr expression();  // with a conditional
  ExpressionPtr expression_without_conditional();
  // One expression, or several with commas between them: a tuple. `for` stops before its `if`.
  enum class Conditional { allowed, not_allowed };
  ExpressionPtr tuple(Conditional conditional);
  // |filter|filter, any number.
  std::vector<TemplateSuffix> filters();
  // filter|filter: the first without a bar.
  std::vector<TemplateSuffix> first_filter_and_rest();
  // What stands left of "=" or "in".
  enum class Namespaces { allowed, not_allowed };
  TemplateTarget target(Namespaces namespaces);
  TemplateTarget single_target(Namespaces namespaces);

  // Held while something nested is parsed.
  class Nesting {
   public:
    explicit Nesting(TemplateExpressionParser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    TemplateExpressionParser& parser_;
  };

  // Set by names that a macro's body looks at.
  struct MacroNames {
    bool caller = false;
    bool varargs = false;
    bool kwargs = false;
  };
  MacroNames macro_names;

 private:
  static bool is(const TemplateToken& token, TemplateToken::Kind kind, std::string_view text) {
    return token.kind == kind && token.text == text;
  }
  template <class Node>
  ExpressionPtr make(TemplatePosition position, Node node) {
    return std::make_unique<TemplateExpression>(TemplateExpression{position, std::move(node)});
  }

  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  enum class Filters { allowed, not_allowed };
  ExpressionPtr unary(Filters filters);
  ExpressionPtr primary();
  ExpressionPtr name_or_constant();
  ExpressionPtr number();
  ExpressionPtr list();
  ExpressionPtr dict();
  bool at_end_of_tuple() const;
  ExpressionPtr with_suffixes(ExpressionPtr base, Filters filters);
  bool postfix(std::vector<TemplateSuffix>& suffixes);
  bool filter_or_test(std::vector<TemplateSuffix>& suffixes);
  TemplateSuffix subscript();
  TemplateSuffix test();
  CallArguments arguments();
  TemplateSuffix filter();
  std::string dotted_name();

  std::vector<TemplateToken> tokens_;
  size_t next_ = 0;
  int nesting_ = 0;
};

}  // namespace paceline
