// ConstraintSpec is what the text of an answer must be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline {

struct ConstraintSpec {
  enum class Kind : uint8_t {
    json_object,  // any JSON object
    json_schema,  // JSON that the schema in `text` accepts
    regex,        // a whole match of the regular expression in `text`
    grammar,      // `text` is a grammar: GBNF, or Lark's notation
    choice,       // one of `choices`
  };
  Kind kind = Kind::json_object;
  std::string text;
  std::vector<std::string> choices;
  // Of a schema: what would only be an annotation, as an unknown `format`, is an error.
  bool strict = false;
  // Of a schema that isn't strict: what can't be enforced is left out and named in
  // Completion::warnings, where it else is an error.
  bool best_effort = false;

  bool operator==(const ConstraintSpec&) const = default;
};

}  // namespace paceline
