// The string methods that search: startswith, endswith, find, index, count.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/template_arguments.h"
#include "chat/template_runtime.h"

namespace paceline {

// A call of a string's method.
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

enum class TextEnd { start, end };
TemplateValue begins_or_ends_with(const StringCall& call, TextEnd where);

// Without a match find and rfind return -1, index and rindex throw TemplateError.
enum class TextSearch { find, rfind, index, rindex };
TemplateValue search_text(const StringCall& call, TextSearch how);

TemplateValue count_text(const StringCall& call);

}  // namespace paceline
