// TemplateInterpreter runs a template's tree.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/switched.h"
#include "chat/template_runtime.h"
#include "chat/template_tree.h"
#include "chat/template_value.h"

namespace paceline {

// The variables of one block; lookups go from inner to outer scopes.
class TemplateScope {
 public:
  explicit TemplateScope(TemplateScope* parent) : parent_(parent) {}

  // `name` must outlive the scope: it belongs to the tree or the input.
  void set(std::string_view name, TemplateValue value) {
    for (auto& [known, of_known] : variables_) {
      if (known != name) continue;
      of_known = std::move(value);
      return;
    }
    variables_.emplace_back(name, std::move(value));
  }

  const TemplateValue* find(std::string_view name) const {
    for (const TemplateScope* scope = this; scope != nullptr; scope = scope->parent_) {
      for (const auto& [known, value] : scope->variables_) {
        if (known == name) return &value;
      }
    }
    return nullptr;
  }

  // Keeps the scope and its outer scopes for a macro, until the rendering ends.
  void keep() {
    for (TemplateScope* scope = this; scope != nullptr && !scope->is_kept_;
         scope = scope->parent_) {
      scope->is_kept_ = true;
    }
  }
  bool is_kept() const { return is_kept_; }

 private:
  TemplateScope* parent_;
  std::vector<std::pair<std::string_view, TemplateValue>> variables_;
  bool is_kept_ = false;
};

// One per rendering. Recursion is bounded by the tree's depth and the budget of calls.
class TemplateInterpreter {
 public:
  using Variables = std::vector<std::pair<std::string, TemplateValue>>;

  // Both must outlive it.
  TemplateInterpreter(const Variables& variables, TemplateRuntime& runtime);
  ~TemplateInterpreter();

  // Throws TemplateError with the position, or RaisedByTemplate.
  std::string run(const ScopedBody& body);

  // For objects that templates call: macros, and recursive loops.
  TemplateRuntime& runtime() { return runtime_; }
  std::string call_macro(const MacroDefinition& macro, TemplateScope& defined_in,
                         TemplateArguments arguments);
  std::string run_loop(const ForStatement& loop, TemplateScope& scope, TemplateValue items,
                       int64_t depth);

 private:
  enum class Flow : uint8_t { next, break_loop, continue_loop };
  // A scope nested in the current one, for a body or a statement without one. It is kept if a macro
  // was defined in it.
  class NewScope {
   public:
    NewScope(TemplateInterpreter& interpreter, const ScopedBody& body) : NewScope(interpreter) {
      interpreter.hide_names(body);
    }
    explicit NewScope(TemplateInterpreter& interpreter)
        : interpreter_(interpreter), outer_(interpreter.scope_) {
      interpreter.runtime_.charge(sizeof(TemplateScope));
      interpreter.scopes_.push_back(std::make_unique<TemplateScope>(outer_));
      mine_ = interpreter.scopes_.back().get();
      interpreter.scope_ = mine_;
    }
    ~NewScope() {
      interpreter_.scope_ = outer_;
      // Kept scopes stay. Any other is the last: inner scopes were closed before.
      if (!mine_->is_kept() && interpreter_.scopes_.back().get() == mine_)
        interpreter_.scopes_.pop_back();
    }
    NewScope(const NewScope&) = delete;
    NewScope& operator=(const NewScope&) = delete;

   private:
    TemplateInterpreter& interpreter_;
    TemplateScope* outer_;
    TemplateScope* mine_;
  };

  // Statements.
  Flow run_body(const TemplateBody& body);
  Flow run_statement(const TemplateStatement& statement);
  void print(const TemplateValue& value);
  void write(std::string_view text);
  Flow run_if(const IfStatement& statement);
  Flow run_with(const WithStatement& statement);
  void run_for(const ForStatement& loop, TemplateValue items, int64_t depth);
  TemplateValue value_of(const TemplateTarget& target);
  TemplateValues filtered(const ForStatement& loop, TemplateValues items);
  void assign(const TemplateTarget& target, TemplateValue value);
  std::string captured(const ScopedBody& body);
  void hide_names(const ScopedBody& body);
  void run_set_block(const SetBlockStatement& statement);
  void run_filter_block(const FilterStatement& statement);
  void run_call(const CallStatement& statement);
  void bind_parameters(const MacroDefinition& macro, TemplateArguments& arguments);
  void bind_rest(const MacroDefinition& macro, TemplateArguments& arguments);

  // Expressions.
  TemplateValue evaluate(const TemplateExpression& expression);
  TemplateValue evaluate_name(const std::string& name);
  TemplateValue evaluate_comparison(const CompareNode& node);
  TemplateValue evaluate_suffixes(const SuffixNode& node, TemplateArguments* extra_arguments);
  TemplateValue apply_suffixes(TemplateValue value, const std::vector<TemplateSuffix>& suffixes);
  TemplateValue apply_suffix(const TemplateValue& value, const TemplateSuffix& suffix);
  TemplateValue evaluate_slice(const TemplateValue& value, const SliceSuffix& slice);
  TemplateArguments evaluate_arguments(const CallArguments& arguments);
  TemplateValue call(const TemplateValue& callee, TemplateArguments arguments);

  TemplateRuntime& runtime_;
  std::vector<std::unique_ptr<TemplateScope>> scopes_;  // open and kept ones
  TemplateScope* scope_;
  std::string* out_ = nullptr;
};

}  // namespace paceline
