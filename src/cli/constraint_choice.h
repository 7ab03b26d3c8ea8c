// Constraints as options and lines of JSON give them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "cli/settings.h"

namespace paceline {

// A constraint, and the option or field that gave it.
struct NamedConstraint {
  ConstraintSpec spec;
  std::string name;          // for messages: "--regex", "--grammar a.gbnf", "json_schema"
  bool is_argument = false;  // it stands on the command line, not in a file or a line
};

// The fields of a line that say what a text must be: one of them, and perhaps strict.
inline constexpr std::string_view kConstraintNames[] = {"json_schema", "regex",       "grammar",
                                                        "choice",      "json_object", "strict"};

// The constraint of the options. Throws UsageError when there are two, Error for a file that can't
// be read.
std::optional<NamedConstraint> chosen_constraint(const ConstraintChoice& choice);

// The constraint of a line; `strict` where the line doesn't say. Throws Error invalid when there
// are two.
std::optional<NamedConstraint> read_constraint(const Json& line, bool strict);

// Throws `error`, of compiling the constraint, with its name in front; as a UsageError if it was an
// argument.
[[noreturn]] void throw_named(const NamedConstraint& constraint, const Error& error);

// The settings with the constraint of the options in settings.generate. Compiles it, so that what
// is wrong with it is said before a model is loaded.
Settings with_constraint(const Settings& settings);

// Replaces the constraint of settings.generate by the line's, if it has one.
void apply_constraint_fields(const Json& line, Settings& settings);

}  // namespace paceline
