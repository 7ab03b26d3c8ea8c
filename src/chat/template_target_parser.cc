#include "chat/template_target_parser.h"

#include <fmt/format.h>

namespace paceline {

std::string parse_assigned_name(TemplateTokenStream& tokens) {
  const TemplatePosition position = tokens.peek().position;
  std::string name = tokens.expect_identifier();
  for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
    if (name == constant) tokens.fail(position, fmt::format("can't assign to {}", name));
  }
  return name;
}

TemplateTarget parse_single_target(TemplateTokenStream& tokens, NamespaceTargets namespaces) {
  const TemplatePosition position = tokens.peek().position;
  if (tokens.take_op("(")) {
    const TemplateTokenStream::Nesting nesting(tokens);
    TemplateTarget inner = parse_target(tokens, namespaces);
    tokens.expect_op(")");
    return inner;
  }
  TemplateTarget target{.position = position, .name = parse_assigned_name(tokens)};
  if (namespaces == NamespaceTargets::allowed && tokens.take_op(".")) {
    target.attribute = tokens.expect_identifier();
  }
  return target;
}

TemplateTarget parse_target(TemplateTokenStream& tokens, NamespaceTargets namespaces) {
  const TemplatePosition position = tokens.peek().position;
  TemplateTarget first = parse_single_target(tokens, namespaces);
  if (!tokens.at_op(",")) return first;
  TemplateTarget all{.position = position};
  all.parts.push_back(std::move(first));
  while (tokens.take_op(",")) {
    if (tokens.at_op("=") || tokens.at_name("in") || tokens.at_op(")")) break;
    all.parts.push_back(parse_single_target(tokens, namespaces));
  }
  return all;
}

}  // namespace paceline
