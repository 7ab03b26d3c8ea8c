// TemplateTokenStream reads the tokens of a template one by one, for its parsers.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/switched.h"
#include "chat/template_lexer.h"

namespace paceline {

// The maximum nesting depth of blocks, brackets and conditionals.
inline constexpr int kMaxTemplateNesting = 64;

class TemplateTokenStream {
 public:
  // The last token is `end`, and is never consumed.
  explicit TemplateTokenStream(std::vector<TemplateToken> tokens) : tokens_(std::move(tokens)) {}

  const TemplateToken& peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  TemplateToken take();
  bool at(TemplateToken::Kind kind) const { return peek().kind == kind; }
  bool at_op(std::string_view op) const { return is(peek(), TemplateToken::Kind::op, op); }
  bool at_name(std::string_view name) const { return is(peek(), TemplateToken::Kind::name, name); }
  bool take_op(std::string_view op);
  bool take_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect_name(std::string_view name);
  std::string expect_identifier();

  // Parses the items between commas up to `close`, which is taken; a trailing comma is allowed.
  template <class ParseOne>
  void comma_separated(std::string_view close, ParseOne parse_one) {
    for (bool is_first = true; !at_op(close); is_first = false) {
      if (!is_first) expect_op(",");
      if (at_op(close)) break;
      parse_one();
    }
    expect_op(close);
  }

  [[noreturn]] void fail(const TemplatePosition& position, const std::string& message) const;
  // "expected WHAT, found TOKEN"
  [[noreturn]] void unexpected(std::string_view what) const;

  static bool is(const TemplateToken& token, TemplateToken::Kind kind, std::string_view text) {
    return token.kind == kind && token.text == text;
  }

  // Held while something nested is parsed; throws TemplateError exhausted when nested too deeply.
  [[nodiscard]] Switched<int> nest();

 private:
  std::vector<TemplateToken> tokens_;
  size_t next_ = 0;
  int nesting_ = 0;
};

}  // namespace paceline
