// A call of a string's method.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/template_arguments.h"
#include "chat/template_runtime.h"

namespace paceline {

struct StringCall {
  TemplateRuntime& runtime;
  std::string_view name;  // of the method
  const std::string& text;
  ArgumentReader& arguments;

  TemplateValue made(std::string_view result) const { return runtime.text(std::string(result)); }
  TemplateValue made_list(const std::vector<std::string_view>& parts) const {
    TemplateValues items;
    runtime.charge_items(parts.size());
    for (const std::string_view part : parts) items.push_back(made(part));
    return TemplateValue::list(std::move(items));
  }
};

}  // namespace paceline
