// The filters of chat templates: Jinja's, and tojson of transformers.
#pragma once

#include <span>
#include <string_view>

#include "chat/template_arguments.h"
#include "chat/template_runtime.h"

namespace paceline {

// Must agree with jinja2.filters. Unsupported: pprint, random, urlize, xmlattr, wordwrap,
// striptags, filesizeformat. Throws TemplateError naming an unknown filter.
TemplateValue apply_filter(TemplateRuntime& runtime, std::string_view name,
                           const TemplateValue& value, TemplateArguments arguments);
bool is_filter(std::string_view name);

// A filter's name and function. It is an error if the function leaves arguments untaken.
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

// Looks up the argument `attribute` of map, sort and others, such as a.b.0, in a value; without one
// it returns the value.
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
