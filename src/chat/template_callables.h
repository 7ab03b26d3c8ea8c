// The callable objects that templates make: macros and loops.
#pragma once

#include "chat/template_interpreter.h"
#include "chat/template_object.h"

namespace paceline {

class MacroObject final : public TemplateObject {
 public:
  MacroObject(TemplateInterpreter& interpreter, const MacroDefinition& macro, TemplateScope& scope)
      : interpreter_(interpreter), macro_(macro), scope_(scope) {
    scope.keep();
  }
  std::string_view type_name() const override { return "Macro"; }
  bool is_callable() const override { return true; }
  TemplateValue call(TemplateArguments arguments) override {
    return TemplateValue(interpreter_.call_macro(macro_, scope_, std::move(arguments)));
  }
  std::optional<TemplateValue> attribute(std::string_view name) override;

 private:
  TemplateInterpreter& interpreter_;
  const MacroDefinition& macro_;
  TemplateScope& scope_;
};

// The variable `loop` inside {% for %}.
class LoopObject final : public TemplateObject {
 public:
  LoopObject(TemplateInterpreter& interpreter, const ForStatement& loop, TemplateScope& around,
             const TemplateValues& items, int64_t depth)
      : interpreter_(interpreter), loop_(loop), around_(around), items_(items), depth_(depth) {}

  void set_index(size_t index) { index_ = index; }

  std::string_view type_name() const override { return "LoopContext"; }
  bool is_callable() const override { return loop_.is_recursive; }
  TemplateValue call(TemplateArguments arguments) override;
  std::optional<TemplateValue> attribute(std::string_view name) override;

 private:
  friend class LoopMethod;
  TemplateValue cycle(const TemplateValues& values) const;
  TemplateValue changed(TemplateValues values);

  TemplateInterpreter& interpreter_;
  const ForStatement& loop_;
  TemplateScope& around_;
  // A copy: the object may outlive the loop.
  TemplateValues items_;
  size_t index_ = 0;
  int64_t depth_;
  std::optional<TemplateValue> last_changed_;
};

}  // namespace paceline
