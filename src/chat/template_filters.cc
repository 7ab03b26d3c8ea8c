#include "chat/template_filters.h"

#include <fmt/format.h>

#include "chat/python_character.h"
#include "chat/python_number.h"
#include "chat/python_string.h"
#include "chat/template_convert.h"
#include "chat/template_table.h"

namespace paceline {
namespace {

const FilterDefinition* find_filter(std::string_view name) {
  for (const auto filters :
       {text_filters(), number_filters(), sequence_filters(), order_filters()}) {
    if (const FilterDefinition* found = find_named(filters, name)) return found;
  }
  return nullptr;
}

}  // namespace

bool is_filter(std::string_view name) { return find_filter(name) != nullptr; }

TemplateValue apply_filter(TemplateRuntime& runtime, std::string_view name,
                           const TemplateValue& value, TemplateArguments arguments) {
  runtime.step();
  const FilterDefinition* filter = find_filter(name);
  if (filter == nullptr) throw TemplateError("No filter named '{}'", name);
  ArgumentReader reader(name, std::move(arguments));
  TemplateValue result = filter->apply(runtime, value, reader);
  reader.finish();
  return result;
}

AttributePath::AttributePath(const TemplateValue& value) {
  if (value.is_none()) return;
  require_defined(value);
  if (value.is_integral()) {
    parts_.push_back(value);
  } else if (value.is_string()) {
    for (const std::string_view part : split_on(value.text(), ".", -1, SplitFrom::left)) {
      const auto number = all_characters(part, is_digit) ? parse_int(part, 10) : std::nullopt;
      parts_.push_back(number ? TemplateValue(*number) : TemplateValue(std::string(part)));
    }
  } else {
    throw TemplateError("an attribute must be a string or an integer, not {}", value.type_name());
  }
}

TemplateValue AttributePath::of(TemplateRuntime& runtime, TemplateValue value) const {
  for (const TemplateValue& part : parts_) value = item_of(runtime, value, part);
  return value;
}

}  // namespace paceline
