// The negation of a schema: one of several sets of other schemas holds.
#pragma once

#include <vector>

#include "grammar/schema_document.h"

namespace paceline {

// By De Morgan's laws, keyword by keyword. Nothing in it: the schema always holds.
std::vector<SchemaSet> negation_options(SchemaDocument& document, SchemaNodeId id);

}  // namespace paceline
