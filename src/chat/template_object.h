// TemplateObject is a value that isn't data: a function, a macro, a namespace, the loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "chat/template_arguments.h"
#include "chat/template_error.h"
#include "chat/template_value.h"

namespace paceline {

// Owned by the rendering's TemplateRuntime.
class TemplateObject {
 public:
  TemplateObject() = default;
  TemplateObject(const TemplateObject&) = delete;
  TemplateObject& operator=(const TemplateObject&) = delete;
  virtual ~TemplateObject() = default;

  virtual std::string_view type_name() const = 0;
  virtual bool is_callable() const { return false; }
  // By value, since overriders move from the arguments.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  virtual TemplateValue call(TemplateArguments /*arguments*/) {
    throw TemplateError("'" + std::string(type_name()) + "' object is not callable");
  }
  // The attribute of this name; nothing when there is none.
  virtual std::optional<TemplateValue> attribute(std::string_view /*name*/) { return std::nullopt; }
};

// A function, or a method with its object.
class FunctionObject final : public TemplateObject {
 public:
  using Function = std::function<TemplateValue(TemplateArguments arguments)>;

  FunctionObject(std::string_view type_name, Function function)
      : type_name_(type_name), function_(std::move(function)) {}
  std::string_view type_name() const override { return type_name_; }
  bool is_callable() const override { return true; }
  TemplateValue call(TemplateArguments arguments) override {
    return function_(std::move(arguments));
  }

 private:
  std::string_view type_name_;
  Function function_;
};

}  // namespace paceline
