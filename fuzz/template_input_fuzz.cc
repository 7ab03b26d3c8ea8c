// Any JSON object as the input of chat templates: the built-in formats, and a template that reads
// everything, render it within their budget or throw an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "chat/builtin_templates.h"
#include "chat/template_renderer.h"
#include "paceline/error.h"

namespace {

using namespace paceline;

constexpr std::string_view kCurious = R"({%- macro show(v) -%}
{%- if v is mapping %}{% for k, x in v|dictsort %}{{ k }}={{ show(x) }};{% endfor %}
{%- elif v is string %}{{ v|trim|title }}{{ v[1:-1]|upper }}{{ v.split()|join('-') }}{{ v[::-1] }}{{ '%s' % v }}
{%- elif v is sequence %}{% for x in v %}{{ loop.index }}{{ show(x) }}{% endfor %}{{ v|length }}
{%- else %}{{ v }}{{ v|string|int }}{% endif %}{%- endmacro -%}
{{ show(messages) }}{{ messages|tojson(indent=2) }}{{ messages|selectattr('role', 'equalto', 'user')|list }}
{%- for m in messages %}{{ m.content|default('')|replace('a', 'b') }}{{ m['role'] ~ m.name }}{% endfor %}
{{- messages|map(attribute='content')|select('string')|sort|join(',') }}{{ tools|tojson }}{{ messages == tools }})";

const std::vector<TemplateRenderer>& templates() {
  static const std::vector<TemplateRenderer> all = [] {
    std::vector<TemplateRenderer> made;
    for (const BuiltinTemplate& one : kBuiltinTemplates) made.emplace_back(one.source, one.name);
    made.emplace_back(kCurious, "curious");
    return made;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr TemplateLimits kLimits{
      .steps = 50'000, .output_bytes = 1 << 18, .made_bytes = 1 << 23, .range = 1000};
  NamedJson variables;
  try {
    const Json json = parse_json({reinterpret_cast<const char*>(data), size}, "input");
    for (const auto& [name, value] : json.as_object("input")) variables.emplace_back(name, value);
  } catch (const Error&) {
    return 0;
  }
  for (const TemplateRenderer& one : templates()) {
    try {
      if (!is_valid_utf8(one.render(variables, CivilTime{.year = 2026}, kLimits))) std::abort();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal) std::abort();
    }
  }
  return 0;
}
