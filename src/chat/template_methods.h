// The methods of strings, lists and dicts.
#pragma once

#include <string>
#include <string_view>

#include "chat/template_arguments.h"
#include "chat/template_object.h"
#include "chat/template_runtime.h"

namespace paceline {

bool has_method(const TemplateValue& self, std::string_view name);

// `name` must be a method of self. Methods that would change a list or dict are refused, as in the
// sandbox of transformers.
TemplateValue call_method(TemplateRuntime& runtime, const TemplateValue& self,
                          std::string_view name, TemplateArguments arguments);

// x.strip as a value.
class BoundMethod final : public TemplateObject {
 public:
  BoundMethod(TemplateRuntime& runtime, TemplateValue self, std::string name)
      : runtime_(runtime), self_(std::move(self)), name_(std::move(name)) {}
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  bool is_callable() const override { return true; }
  TemplateValue call(TemplateArguments arguments) override {
    return call_method(runtime_, self_, name_, std::move(arguments));
  }

 private:
  TemplateRuntime& runtime_;
  TemplateValue self_;
  std::string name_;
};

bool is_string_method(std::string_view name);

// Must agree with Python's str.
TemplateValue call_string_method(TemplateRuntime& runtime, const TemplateValue& self,
                                 std::string_view name, TemplateArguments arguments);

}  // namespace paceline
