// The request fields that say what the text of an answer must be, under all the names that APIs
// give them.
#pragma once

#include <optional>
#include <string>

#include "paceline/constraint_spec.h"
#include "protocol/request_reader.h"

namespace paceline {

class ConstraintCache;

// The constraint of a request, which has at most one.
struct AskedConstraint {
  std::optional<ConstraintSpec> spec;
  std::string field;  // its path, for messages
};

FieldTable<AskedConstraint> constraint_fields();

// Compiles it, so that the request finds it in the cache. Throws RequestError naming the field;
// does nothing without a constraint, or a cache.
void check_constraint(const AskedConstraint& asked, ConstraintCache* cache);

}  // namespace paceline
