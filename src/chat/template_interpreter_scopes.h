// RAII guards for the interpreter's scopes around blocks.
#pragma once

#include "chat/switched.h"
#include "chat/template_interpreter.h"

namespace paceline {

// A scope nested in the current one, for a body or a statement without one. It is kept if a macro
// was defined in it.
class TemplateInterpreter::NewScope {
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

}  // namespace paceline
