#include "chat/template_callables.h"

#include <fmt/format.h>

#include "chat/template_compare.h"

namespace paceline {

std::optional<TemplateValue> MacroObject::attribute(std::string_view name) {
  if (name == "name") return TemplateValue(macro_.name);
  if (name == "catch_kwargs") return TemplateValue(macro_.uses_kwargs);
  if (name == "catch_varargs") return TemplateValue(macro_.uses_varargs);
  if (name == "caller") return TemplateValue(macro_.uses_caller);
  if (name != "arguments") return std::nullopt;
  TemplateValues names;
  for (const std::string& parameter : macro_.parameters) names.emplace_back(parameter);
  return TemplateValue::tuple(std::move(names));
}

// loop.cycle and loop.changed
class LoopMethod final : public TemplateObject {
 public:
  LoopMethod(LoopObject& loop, bool is_cycle) : loop_(loop), is_cycle_(is_cycle) {}
  std::string_view type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  TemplateValue call(TemplateArguments arguments) override {
    return is_cycle_ ? loop_.cycle(arguments.positional)
                     : loop_.changed(std::move(arguments.positional));
  }

 private:
  LoopObject& loop_;
  bool is_cycle_;
};

TemplateValue LoopObject::call(TemplateArguments arguments) {
  if (!loop_.is_recursive) {
    throw TemplateError("The loop must have the 'recursive' marker to be called recursively.");
  }
  ArgumentReader reader("loop", std::move(arguments));
  TemplateValue items = reader.required("iterable");
  reader.finish();
  return TemplateValue(interpreter_.run_loop(loop_, around_, std::move(items), depth_ + 1));
}

TemplateValue LoopObject::cycle(const TemplateValues& values) const {
  if (values.empty()) throw TemplateError("no items for cycling given");
  return values[index_ % values.size()];
}

TemplateValue LoopObject::changed(TemplateValues values) {
  TemplateValue now = TemplateValue::tuple(std::move(values));
  if (last_changed_ && equal(*last_changed_, now)) return false;
  last_changed_ = std::move(now);
  return true;
}

std::optional<TemplateValue> LoopObject::attribute(std::string_view name) {
  const auto length = static_cast<int64_t>(items_.size());
  const auto index = static_cast<int64_t>(index_);
  if (name == "index") return TemplateValue(index + 1);
  if (name == "index0") return TemplateValue(index);
  if (name == "first") return TemplateValue(index == 0);
  if (name == "last") return TemplateValue(index + 1 == length);
  if (name == "length") return TemplateValue(length);
  if (name == "revindex") return TemplateValue(length - index);
  if (name == "revindex0") return TemplateValue(length - index - 1);
  if (name == "depth") return TemplateValue(depth_ + 1);
  if (name == "depth0") return TemplateValue(depth_);
  if (name == "previtem") {
    return index > 0 ? items_[index_ - 1] : TemplateValue::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < length ? items_[index_ + 1]
                              : TemplateValue::undefined("there is no next item");
  }
  if (name != "cycle" && name != "changed") return std::nullopt;
  return TemplateValue(interpreter_.runtime().make<LoopMethod>(*this, name == "cycle"));
}

}  // namespace paceline
