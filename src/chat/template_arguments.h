// The arguments of a call in a template, and their binding to parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "chat/template_value.h"

namespace paceline {

struct TemplateArguments {
  TemplateValues positional = {};
  std::vector<std::pair<std::string, TemplateValue>> named = {};
};

// Binds arguments to parameters as Python does: in order, or by name. Each take() binds the next
// parameter. Throws TemplateError for missing, duplicate and unknown arguments.
class ArgumentReader {
 public:
  // `function` names it in errors; it must outlive the reader.
  ArgumentReader(std::string_view function, TemplateArguments arguments)
      : function_(function), arguments_(std::move(arguments)) {}

  TemplateValue required(std::string_view name);
  std::optional<TemplateValue> optional(std::string_view name);
  // The next parameter with a type; `otherwise` when absent. Without `otherwise` it is required.
  int64_t integer(std::string_view name, std::optional<int64_t> otherwise = {});
  bool truth(std::string_view name, bool otherwise);
  std::string text(std::string_view name, std::optional<std::string_view> otherwise = {});

  // All remaining positional arguments.
  TemplateValues rest();
  // Call it after the last parameter: throws when an argument remains.
  void finish();

 private:
  [[noreturn]] void wrong_type(std::string_view name, std::string_view expected,
                               const TemplateValue& found) const;

  std::string_view function_;
  TemplateArguments arguments_;
  size_t next_ = 0;
};

}  // namespace paceline
