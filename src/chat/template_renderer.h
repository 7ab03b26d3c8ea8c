// A parsed template, rendered from parsed JSON; ChatTemplate and the server use it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "chat/strftime.h"
#include "chat/template_runtime.h"
#include "chat/template_tree.h"

namespace paceline {

using NamedJson = std::vector<std::pair<std::string, Json>>;

// Immutable; any number of threads may use it at once.
class TemplateRenderer {
 public:
  // Throws Error invalid "NAME:LINE:COLUMN: ..." when it doesn't parse.
  TemplateRenderer(std::string_view source, std::string_view name);

  // Throws Error invalid with the template's own words for its raise_exception, "NAME:LINE:COLUMN:
  // ..." for what goes wrong in it, exhausted when a budget is used up.
  std::string render(const NamedJson& variables, const CivilTime& now,
                     TemplateLimits limits = {}) const;

 private:
  std::string name_;
  ScopedBody body_;
};

}  // namespace paceline
