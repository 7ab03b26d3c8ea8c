#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <string>

#include "chat/switched.h"
#include "chat/template_expression_parser.h"
#include "chat/template_lexer.h"
#include "chat/template_token_stream.h"
#include "chat/template_tree.h"

namespace paceline {
namespace {

// Whether NAMESPACE.ATTRIBUTE may be assigned to.
enum class NamespaceTargets { allowed, not_allowed };

// A name that isn't a constant.
std::string parse_assigned_name(TemplateTokenStream& tokens) {
  const TemplatePosition position = tokens.peek().position;
  std::string name = tokens.expect_identifier();
  for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
    if (name == constant) tokens.fail(position, fmt::format("can't assign to {}", name));
  }
  return name;
}

TemplateTarget parse_target(TemplateTokenStream& tokens, NamespaceTargets namespaces);

// A name, or targets in brackets.
TemplateTarget parse_single_target(TemplateTokenStream& tokens, NamespaceTargets namespaces) {
  const TemplatePosition position = tokens.peek().position;
  if (tokens.take_op("(")) {
    const auto nesting = tokens.nest();
    TemplateTarget inner = parse_target(tokens, namespaces);
    tokens.expect_op(")");
    return inner;
  }
  TemplateTarget target{.position = position, .name = parse_assigned_name(tokens)};
  if (namespaces == NamespaceTargets::allowed && tokens.take_op(".")) {
    target.attribute = tokens.expect_identifier();
  }
  return target;
}

// The left side of "=" or "in": one target, or several with commas.
TemplateTarget parse_target(TemplateTokenStream& tokens, NamespaceTargets namespaces) {
  const TemplatePosition position = tokens.peek().position;
  TemplateTarget first = parse_single_target(tokens, namespaces);
  if (!tokens.at_op(",")) return first;
  TemplateTarget all{.position = position};
  all.parts.push_back(std::move(first));
  while (tokens.take_op(",")) {
    if (tokens.at_op("=") || tokens.at_name("in") || tokens.at_op(")")) break;
    all.parts.push_back(parse_single_target(tokens, namespaces));
  }
  return all;
}

// A loop's, or one of {% with %}.
void define(const TemplateTarget& target, BodyNames& names) {
  for (const TemplateTarget& part : target.parts) define(part, names);
  if (target.parts.empty()) names.known.insert(target.name);
}

using Kind = TemplateToken::Kind;
using Parser = TemplateExpressionParser;

class StatementParser {
 public:
  explicit StatementParser(std::vector<TemplateToken> tokens) : in_(std::move(tokens)) {}

  ScopedBody run() {
    ScopedBody body = new_body();
    parse_body(body, {});
    if (!in_.at(Kind::end)) {
      const TemplateToken tag = in_.peek(1);
      in_.fail(tag.position, fmt::format("\"{}\" closes nothing that is open", tag.text));
    }
    for (const auto& names : bodies_) names->finish();
    return body;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  ScopedBody new_body() {
    bodies_.push_back(std::make_shared<BodyNames>(BodyNames{.around = in_.names}));
    return {.names = bodies_.back()};
  }

  void parse_body(ScopedBody& body, Names ends) {
    const Switched names(in_.names, body.names);
    const Switched in_if(is_in_if_, false);
    body.statements = body_until(ends);
  }

  TemplateBody if_branch(Names ends) {
    const Switched in_if(is_in_if_, true);
    return body_until(ends);
  }

  // For names that Jinja doesn't look at: those in a loop's condition and in the filters of a
  // block.
  static std::shared_ptr<BodyNames> unnoted() { return std::make_shared<BodyNames>(); }

  void set_names(const TemplateTarget& target) {
    for (const TemplateTarget& part : target.parts) set_names(part);
    if (!target.attribute.empty()) {
      in_.names->known.insert(target.name);  // a namespace is read
    } else if (target.parts.empty()) {
      set_name(target.name);
    }
  }
  void set_name(const std::string& name) {
    if (is_in_if_) {
      in_.names->known.insert(name);
    } else {
      in_.names->set(name);
    }
  }

  // Parses statements up to a block with one of these names, which isn't taken.
  TemplateBody body_until(Names ends) {
    const auto nesting = in_.nest();
    TemplateBody body;
    while (true) {
      const TemplatePosition position = in_.peek().position;
      switch (in_.peek().kind) {
        case Kind::end:
          if (ends.size() > 0)
            in_.unexpected(fmt::format("{{% {} %}}", fmt::join(ends, " %}} or {{% ")));
          return body;
        case Kind::text:
          body.push_back(make(position, TextStatement{in_.take().text}));
          break;
        case Kind::print_begin:
          in_.take();
          body.push_back(make(position, PrintStatement{in_.tuple(Parser::Conditional::allowed)}));
          if (!in_.at(Kind::print_end)) in_.unexpected("}}");
          in_.take();
          break;
        default:
          if (is_end(ends)) return body;
          in_.take();
          body.push_back(statement(position));
      }
    }
  }

  bool is_end(Names ends) const {
    const std::string& name = in_.peek(1).text;
    if (in_.peek(1).kind != Kind::name) return false;
    for (const std::string_view end : ends) {
      if (name == end) return true;
    }
    return ends.size() == 0 && (name.starts_with("end") || name == "else" || name == "elif");
  }

  template <class Statement>
  static std::unique_ptr<TemplateStatement> make(TemplatePosition position, Statement statement) {
    return std::make_unique<TemplateStatement>(TemplateStatement{position, std::move(statement)});
  }

  void end_of_block() {
    if (!in_.at(Kind::block_end)) in_.unexpected("%}");
    in_.take();
  }

  // "{% NAME %}"
  void closing(std::string_view name) {
    in_.take();
    in_.expect_name(name);
    end_of_block();
  }

  std::unique_ptr<TemplateStatement> statement(TemplatePosition position) {
    const std::string name = in_.expect_identifier();
    if (name == "if") return make(position, if_statement());
    if (name == "for") return make(position, for_statement());
    if (name == "set") return set_statement(position);
    if (name == "macro") return make(position, macro_statement());
    if (name == "call") return make(position, call_statement());
    if (name == "filter") return make(position, filter_statement());
    if (name == "with") return make(position, with_statement());
    if (name == "generation") {
      return make(position, ScopeStatement{closed_body("endgeneration", new_body())});
    }
    if (name == "break" || name == "continue") return loop_control(position, name);
    static constexpr std::array<std::string_view, 7> kOthers = {
        "include", "import", "from", "extends", "block", "autoescape", "do"};
    for (const std::string_view other : kOthers) {
      if (name == other) {
        throw TemplateError(position,
                            fmt::format("{{% {} %}} isn't supported in chat templates", name),
                            ErrorCode::unsupported);
      }
    }
    in_.fail(position, fmt::format("{{% {} %}} isn't a statement", name));
  }

  ScopedBody closed_body(std::string_view end, ScopedBody body) {
    end_of_block();
    parse_body(body, {end});
    closing(end);
    return body;
  }

  IfStatement if_statement() {
    IfStatement node;
    while (true) {
      ExpressionPtr condition = in_.tuple(Parser::Conditional::not_allowed);
      end_of_block();
      node.branches.emplace_back(std::move(condition), if_branch({"elif", "else", "endif"}));
      in_.take();
      if (in_.take_name("elif")) continue;
      if (in_.take_name("else")) {
        end_of_block();
        node.otherwise = if_branch({"endif"});
        in_.take();
      }
      in_.expect_name("endif");
      end_of_block();
      return node;
    }
  }

  ForStatement for_statement() {
    ForStatement node{.body = new_body(), .otherwise = new_body()};
    node.target = parse_target(in_, NamespaceTargets::not_allowed);
    in_.expect_name("in");
    node.items = in_.tuple(Parser::Conditional::not_allowed);
    define(node.target, *node.body.names);
    if (in_.take_name("if")) {
      const Switched names(in_.names, unnoted());
      node.condition = in_.expression();
    }
    node.is_recursive = in_.take_name("recursive");
    end_of_block();
    ++loops_;
    parse_body(node.body, {"endfor", "else"});
    --loops_;
    in_.take();
    if (in_.take_name("else")) {
      end_of_block();
      parse_body(node.otherwise, {"endfor"});
      in_.take();
    }
    in_.expect_name("endfor");
    end_of_block();
    return node;
  }

  std::unique_ptr<TemplateStatement> loop_control(TemplatePosition position,
                                                  const std::string& name) {
    if (loops_ == 0) in_.fail(position, fmt::format("{{% {} %}} is outside of a loop", name));
    end_of_block();
    if (name == "break") return make(position, BreakStatement{});
    return make(position, ContinueStatement{});
  }

  std::unique_ptr<TemplateStatement> set_statement(TemplatePosition position) {
    TemplateTarget target = parse_target(in_, NamespaceTargets::allowed);
    if (in_.take_op("=")) {
      SetStatement node{std::move(target), in_.tuple(Parser::Conditional::allowed)};
      set_names(node.target);
      end_of_block();
      return make(position, std::move(node));
    }
    if (!target.parts.empty()) in_.unexpected("\"=\"");
    set_names(target);
    SetBlockStatement node{.target = std::move(target), .filters = {}, .body = {}};
    {
      const Switched names(in_.names, unnoted());
      node.filters = in_.filters();
    }
    node.body = closed_body("endset", new_body());
    return make(position, std::move(node));
  }

  // "(a, b=1)"
  void signature(MacroDefinition& macro) {
    const Switched names(in_.names, macro.body.names);
    in_.expect_op("(");
    while (!in_.at_op(")")) {
      if (!macro.parameters.empty()) in_.expect_op(",");
      const TemplatePosition position = in_.peek().position;
      macro.parameters.push_back(parse_assigned_name(in_));
      in_.names->known.insert(macro.parameters.back());
      if (in_.take_op("=")) {
        macro.defaults.push_back(in_.expression());
      } else if (!macro.defaults.empty()) {
        in_.fail(position, "a parameter without a default follows one with a default");
      }
    }
    in_.expect_op(")");
  }

  // Parses the body, and notes which special names of macros it reads. Loops outside the macro
  // don't count inside.
  void macro_body(MacroDefinition& macro, std::string_view end) {
    auto outer_specials = std::exchange(in_.macro_specials, {});
    const Switched loops(loops_, 0);
    macro.body = closed_body(end, std::move(macro.body));
    macro.specials = in_.macro_specials;
    // Names that a nested macro reads count for the outer one too.
    in_.macro_specials.merge(outer_specials);
  }

  MacroStatement macro_statement() {
    MacroStatement node{.macro = {.name = parse_assigned_name(in_), .body = new_body()}};
    set_name(node.macro.name);
    signature(node.macro);
    macro_body(node.macro, "endmacro");
    return node;
  }

  CallStatement call_statement() {
    CallStatement node{.caller = {.name = "caller", .body = new_body()}};
    if (in_.at_op("(")) signature(node.caller);
    const TemplatePosition position = in_.peek().position;
    node.call = in_.expression();
    const auto* suffixes = std::get_if<SuffixNode>(&node.call->node);
    if (suffixes == nullptr ||
        !std::holds_alternative<CallSuffix>(suffixes->suffixes.back().what)) {
      in_.fail(position, "{% call %} needs a call");
    }
    macro_body(node.caller, "endcall");
    return node;
  }

  FilterStatement filter_statement() {
    // "{% filter upper|trim %}": the first one has no bar.
    FilterStatement node{.filters = in_.first_filter_and_rest(), .body = {}};
    node.body = closed_body("endfilter", new_body());
    return node;
  }

  WithStatement with_statement() {
    WithStatement node{.body = new_body()};
    while (!in_.at(Kind::block_end)) {
      if (!node.assignments.empty()) in_.expect_op(",");
      TemplateTarget target = parse_single_target(in_, NamespaceTargets::not_allowed);
      in_.expect_op("=");
      define(target, *node.body.names);
      node.assignments.emplace_back(std::move(target), in_.expression());
    }
    node.body = closed_body("endwith", std::move(node.body));
    return node;
  }

  Parser in_;
  std::vector<std::shared_ptr<BodyNames>> bodies_;
  bool is_in_if_ = false;  // in this body
  int loops_ = 0;          // open ones
};

}  // namespace

ScopedBody parse_template(std::string_view source) {
  return StatementParser(lex_template(source)).run();
}

}  // namespace paceline
