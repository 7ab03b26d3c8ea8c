// Conversions shared by filters, methods and operators.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "chat/template_runtime.h"
#include "chat/template_value.h"

namespace paceline {

TemplateValue from_json(const Json& json);

// str(value), charged to the budget.
std::string to_text(TemplateRuntime& runtime, const TemplateValue& value);

// The items of a `for` loop: those of a list, the keys of a dict, the characters of a string, the
// rest of a generator. Throws TemplateError for a value that Python can't iterate over.
TemplateValues to_items(TemplateRuntime& runtime, const TemplateValue& value);

// len(value); nothing when it has none.
std::optional<int64_t> length_if_any(const TemplateValue& value);

// value.name and value[key] as in Jinja: looks for an attribute and an item, in either order;
// undefined when there is neither. Throws TemplateError for undefined values.
TemplateValue attribute_of(TemplateRuntime& runtime, const TemplateValue& value,
                           const std::string& name);
TemplateValue item_of(TemplateRuntime& runtime, const TemplateValue& value,
                      const TemplateValue& key);

// &, <, >, ' and " as markupsafe escapes them.
std::string html_escaped(std::string_view text);

// Throws the error of an undefined value.
void require_defined(const TemplateValue& value);

}  // namespace paceline
