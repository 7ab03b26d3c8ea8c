// The global functions of templates: range, dict, namespace, raise_exception, ...
#pragma once

#include <optional>
#include <string_view>

#include "chat/template_runtime.h"

namespace paceline {

// The function of this name; nothing when there is none.
std::optional<TemplateValue> find_global(TemplateRuntime& runtime, std::string_view name);

// The object that {% set ns.x = ... %} changes.
class NamespaceObject final : public TemplateObject {
 public:
  std::string_view type_name() const override { return "Namespace"; }
  std::optional<TemplateValue> attribute(std::string_view name) override;
  void set(std::string name, TemplateValue value);

 private:
  std::vector<std::pair<std::string, TemplateValue>> members_;
};

}  // namespace paceline
