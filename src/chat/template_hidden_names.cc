#include "chat/template_hidden_names.h"

#include <functional>
#include <set>
#include <string_view>

#include "chat/template_tree.h"

namespace paceline {
namespace {

// The names of one body, in order of appearance.
class Names {
 public:
  explicit Names(const Names* parent) : parent_(parent) {}

  void read(std::string_view name) {
    if (!is_known(name)) known_.insert(name);
  }
  void set(std::string_view name) {
    const bool is_known_outside = parent_ != nullptr && parent_->is_known(name);
    if (known_.insert(name).second && !is_known_outside) hidden_.insert(name);
  }
  // Adds a parameter, a loop target, or a name that can't be set.
  void define(std::string_view name) { known_.insert(name); }

  const std::set<std::string_view>& hidden() const { return hidden_; }

 private:
  bool is_known(std::string_view name) const {
    return known_.contains(name) || (parent_ != nullptr && parent_->is_known(name));
  }

  const Names* parent_;
  std::set<std::string_view> known_;
  std::set<std::string_view> hidden_;
};

// Visits one body, then its nested bodies, which see all its names.
class BodyWalk {
 public:
  explicit BodyWalk(const Names* parent) : names_(parent) {}

  void walk(ScopedBody& body) {
    walk(body.statements);
    for (const std::string_view name : names_.hidden()) body.hidden_names.emplace_back(name);
    for (const auto& walk_inner : inner_) walk_inner();
  }

 private:
  void walk(const TemplateBody& body) {
    for (const auto& statement : body) walk(*statement);
  }

  void walk(TemplateStatement& statement) {
    std::visit(Overloaded{
                   [&](const PrintStatement& node) { read(node.value); },
                   [&](const IfStatement& node) { walk_if(node); },
                   [&](ForStatement& node) {
                     read(node.items);
                     later(node.body, [&node](BodyWalk& inner) { inner.define(node.target); });
                     later(node.otherwise);
                   },
                   [&](const SetStatement& node) {
                     read(node.value);
                     set(node.target);
                   },
                   [&](SetBlockStatement& node) {
                     set(node.target);
                     later(node.body);
                   },
                   [&](MacroStatement& node) {
                     set(node.macro.name);
                     walk_macro(node.macro);
                   },
                   [&](CallStatement& node) {
                     read(node.call);
                     walk_macro(node.caller);
                   },
                   [&](FilterStatement& node) {
                     read(node.filters);
                     later(node.body);
                   },
                   [&](WithStatement& node) { walk_with(node); },
                   [&](ScopeStatement& node) { later(node.body); },
                   [](const auto&) {},
               },
               statement.what);
  }

  using Prepare = std::function<void(BodyWalk& inner)>;
  void later(ScopedBody& body, Prepare prepare = {}) {
    inner_.push_back([this, &body, prepare = std::move(prepare)] {
      BodyWalk inner(&names_);
      if (prepare) prepare(inner);
      inner.walk(body);
    });
  }

  void walk_if(const IfStatement& node) {
    ++ifs_;
    for (const auto& [condition, body] : node.branches) {
      read(condition);
      walk(body);
    }
    walk(node.otherwise);
    --ifs_;
  }

  void walk_macro(MacroDefinition& macro) {
    later(macro.body, [&macro](BodyWalk& inner) {
      for (const std::string& parameter : macro.parameters) inner.names_.define(parameter);
      for (const ExpressionPtr& value : macro.defaults) inner.read(value);
    });
  }

  void walk_with(WithStatement& node) {
    for (const auto& assignment : node.assignments) read(assignment.second);
    later(node.body, [&node](BodyWalk& inner) {
      for (const auto& assignment : node.assignments) inner.define(assignment.first);
    });
  }

  void set(const std::string& name) { ifs_ > 0 ? names_.define(name) : names_.set(name); }

  void set(const TemplateTarget& target) {
    for (const TemplateTarget& part : target.parts) set(part);
    if (!target.parts.empty()) return;
    target.attribute.empty() ? set(target.name) : names_.read(target.name);
  }

  void define(const TemplateTarget& target) {
    for (const TemplateTarget& part : target.parts) define(part);
    if (target.parts.empty()) names_.define(target.name);
  }

  void read(const ExpressionPtr& expression) {
    if (expression == nullptr) return;
    std::visit(Overloaded{
                   [](const LiteralNode&) {},
                   [&](const NameNode& node) { names_.read(node.name); },
                   [&](const ListNode& node) { read(node.items); },
                   [&](const DictNode& node) { read(node.members); },
                   [&](const UnaryNode& node) { read(node.operand); },
                   [&](const ConcatNode& node) { read(node.parts); },
                   [&](const LogicalNode& node) { read(node.operands); },
                   [&](const ConditionalNode& node) {
                     read(node.condition);
                     read(node.yes);
                     read(node.no);
                   },
                   [&](const SuffixNode& node) {
                     read(node.base);
                     read(node.suffixes);
                   },
                   [&](const auto& chain) {  // of comparisons, or of arithmetic
                     read(chain.first);
                     read(chain.rest);
                   },
               },
               expression->node);
  }

  template <class Part>
  void read(const std::vector<Part>& parts) {
    for (const Part& part : parts) read(part);
  }
  void read(const std::pair<ExpressionPtr, ExpressionPtr>& member) {
    read(member.first);
    read(member.second);
  }
  template <class Label>  // an operator, or a name
  void read(const std::pair<Label, ExpressionPtr>& labelled) {
    read(labelled.second);
  }

  void read(const TemplateSuffix& suffix) {
    std::visit(Overloaded{
                   [](const AttributeSuffix&) {},
                   [&](const ItemSuffix& of) { read(of.key); },
                   [&](const SliceSuffix& of) {
                     read(of.start);
                     read(of.stop);
                     read(of.step);
                   },
                   [&](const auto& of) { read(of.arguments); },
               },
               suffix.what);
  }
  void read(const CallArguments& arguments) {
    read(arguments.positional);
    read(arguments.named);
    read(arguments.sequence);
    read(arguments.mapping);
  }

  Names names_;
  int ifs_ = 0;  // around the statement
  std::vector<std::function<void()>> inner_;
};

}  // namespace

void find_hidden_names(ScopedBody& root) { BodyWalk(nullptr).walk(root); }

}  // namespace paceline
