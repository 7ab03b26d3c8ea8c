// TemplateRenderer renders a parsed template from parsed JSON; ChatTemplate and the server use it.
#pragma once

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
  // Throws Error invalid "NAME:LINE:COLUMN: ..." when the source can't be parsed.
  TemplateRenderer(std::string_view source, std::string_view name);

  // Throws Error invalid with the message of the template's raise_exception, or "NAME:LINE:COLUMN:
  // ..." for other errors in it; exhausted when a budget is used up.
  std::string render(const NamedJson& variables, const CivilTime& now,
                     TemplateLimits limits = {}) const;

 private:
  std::string name_;
  ScopedBody body_;
};

}  // namespace paceline
