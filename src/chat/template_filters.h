// The filters of chat templates: those of Jinja, and transformers' tojson.
#pragma once

#include <span>
#include <string_view>

#include "chat/template_arguments.h"
#include "chat/template_runtime.h"

namespace paceline {

// Must agree with jinja2.filters. Not here: pprint, random, urlize, xmlattr, wordwrap, striptags,
// filesizeformat. Throws TemplateError naming a filter that doesn't exist.
TemplateValue apply_filter(TemplateRuntime& runtime, std::string_view name,
                           const TemplateValue& value, TemplateArguments arguments);
bool is_filter(std::string_view name);

// A filter's name and function. Arguments that the function doesn't take are an error.
using FilterFunction = TemplateValue (*)(TemplateRuntime& runtime, const TemplateValue& value,
                                         ArgumentReader& arguments);
struct FilterDefinition {
  std::string_view name;
  FilterFunction apply;
};

// The parts of the table, each in a file of its own.
std::span<const FilterDefinition> text_filters();
std::span<const FilterDefinition> number_filters();
std::span<const FilterDefinition> sequence_filters();
std::span<const FilterDefinition> order_filters();

// The value picked by the argument `attribute` of map, sort and others: a.b.0, or the value itself
// without one.
class AttributePath {
 public:
  AttributePath() = default;
  // `value` is a string of names and numbers with dots, an integer, or none.
  explicit AttributePath(const TemplateValue& value);
  TemplateValue of(TemplateRuntime& runtime, TemplateValue value) const;
  bool empty() const { return parts_.empty(); }

 private:
  TemplateValues parts_;
};

}  // namespace paceline
