#include "chat/template_renderer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "chat/template_convert.h"
#include "chat/template_interpreter.h"
#include "chat/template_tree.h"

namespace paceline {
namespace {

[[noreturn]] void rethrow(const TemplateError& error, std::string_view name) {
  const TemplatePosition position = error.position();
  throw Error(error.code(),
              fmt::format("{}:{}:{}: {}", name, position.line, position.column, error.what()));
}

}  // namespace

TemplateRenderer::TemplateRenderer(std::string_view source, std::string_view name) : name_(name) {
  try {
    body_ =
        parse_template(is_valid_utf8(source) ? std::string(source) : replace_invalid_utf8(source));
  } catch (const TemplateError& error) {
    rethrow(error, name_);
  }
}

std::string TemplateRenderer::render(const NamedJson& variables, const CivilTime& now,
                                     TemplateLimits limits) const {
  try {
    TemplateInterpreter::Variables values;
    for (const auto& [name, json] : variables) values.emplace_back(name, from_json(json));
    TemplateRuntime runtime(limits, now);
    return TemplateInterpreter(values, runtime).run(body_);
  } catch (const TemplateError& error) {
    rethrow(error, name_);
  } catch (const RaisedByTemplate& raised) {
    throw Error(ErrorCode::invalid, raised.what());
  }
}

}  // namespace paceline
