// Scopes that the interpreter opens around blocks and closes even when an exception is thrown.
#pragma once

#include "chat/template_interpreter.h"

namespace paceline {

// A scope inside the current one, for a body or for a statement without one. It lives on if a macro
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
    // Kept scopes stay where they are; one that isn't is the last: those behind it are closed.
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

// The scope that a macro was defined in, while it runs.
class InScope {
 public:
  InScope(TemplateScope*& current, TemplateScope& scope) : current_(current), before_(current) {
    current = &scope;
  }
  ~InScope() { current_ = before_; }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  TemplateScope*& current_;
  TemplateScope* before_;
};

// Output goes to `text` meanwhile.
class TemplateInterpreter::Capture {
 public:
  Capture(TemplateInterpreter& interpreter, std::string& text)
      : interpreter_(interpreter), before_(interpreter.out_) {
    interpreter.out_ = &text;
  }
  ~Capture() { interpreter_.out_ = before_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  TemplateInterpreter& interpreter_;
  std::string* before_;
};

}  // namespace paceline
