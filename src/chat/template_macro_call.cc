// Calls of macros: binds arguments to parameters.
#include <fmt/format.h>

#include "chat/template_interpreter.h"

namespace paceline {
namespace {

std::optional<TemplateValue> take_named(TemplateArguments& arguments, std::string_view name) {
  for (auto at = arguments.named.begin(); at != arguments.named.end(); ++at) {
    if (at->first != name) continue;
    TemplateValue value = std::move(at->second);
    arguments.named.erase(at);
    return value;
  }
  return std::nullopt;
}

}  // namespace

void TemplateInterpreter::bind_parameters(const MacroDefinition& macro,
                                          TemplateArguments& arguments) {
  const size_t first_default = macro.parameters.size() - macro.defaults.size();
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const std::string& name = macro.parameters[i];
    auto named = take_named(arguments, name);
    if (i < arguments.positional.size()) {
      if (named) throw TemplateError("macro '{}' got {} twice", macro.name, name);
      scope_->set(name, std::move(arguments.positional[i]));
    } else if (named) {
      scope_->set(name, std::move(*named));
    } else if (i >= first_default) {
      scope_->set(name, evaluate(*macro.defaults[i - first_default]));
    } else {
      scope_->set(name,
                  TemplateValue::undefined(fmt::format("parameter '{}' was not provided", name)));
    }
  }
}

// Binds the remaining arguments to caller, varargs and kwargs, if the macro reads them; otherwise
// they are an error.
void TemplateInterpreter::bind_rest(const MacroDefinition& macro, TemplateArguments& arguments) {
  if (macro.specials.contains("caller")) {
    scope_->set(
        "caller",
        take_named(arguments, "caller").value_or(TemplateValue::undefined("No caller defined")));
  }
  TemplateValues rest;
  for (size_t i = macro.parameters.size(); i < arguments.positional.size(); ++i) {
    rest.push_back(std::move(arguments.positional[i]));
  }
  if (macro.specials.contains("varargs")) {
    scope_->set("varargs", TemplateValue::tuple(std::move(rest)));
  } else if (!rest.empty()) {
    throw TemplateError("macro '{}' takes not more than {} argument(s)", macro.name,
                        macro.parameters.size());
  }
  if (macro.specials.contains("kwargs")) {
    TemplateMapping named;
    for (auto& [name, value] : arguments.named) named.set(TemplateValue(name), std::move(value));
    scope_->set("kwargs", TemplateValue::mapping(std::move(named)));
  } else if (!arguments.named.empty()) {
    throw TemplateError("macro '{}' takes no keyword argument '{}'", macro.name,
                        arguments.named[0].first);
  }
}

std::string TemplateInterpreter::call_macro(const MacroDefinition& macro, TemplateScope& defined_in,
                                            TemplateArguments arguments) {
  const auto call_depth = runtime_.nest();
  std::string text;
  const Switched capture(out_, &text);
  const Switched in_scope(scope_, &defined_in);
  const NewScope scope(*this, macro.body);
  bind_parameters(macro, arguments);
  bind_rest(macro, arguments);
  run_body(macro.body.statements);
  return text;
}

}  // namespace paceline
