// The parser of the targets of assignments.
#pragma once

#include <string>

#include "chat/template_token_stream.h"
#include "chat/template_tree.h"

namespace paceline {

// Whether NAMESPACE.ATTRIBUTE may be assigned to.
enum class NamespaceTargets { allowed, not_allowed };

// The left side of "=" or "in": one target, or several with commas.
TemplateTarget parse_target(TemplateTokenStream& tokens, NamespaceTargets namespaces);
// A name, or targets in brackets.
TemplateTarget parse_single_target(TemplateTokenStream& tokens, NamespaceTargets namespaces);
// A name that isn't a constant.
std::string parse_assigned_name(TemplateTokenStream& tokens);

}  // namespace paceline
