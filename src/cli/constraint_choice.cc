#include "cli/constraint_choice.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_writer.h"
#include "cli/line_fields.h"
#include "cli/option_value.h"
#include "cli/text_file.h"
#include "cli/usage_error.h"
#include "cli/words.h"
#include "grammar/constraint.h"

namespace paceline {
namespace {

using ConstraintKind = ConstraintSpec::Kind;

// "a,b" is two texts; a text with a comma is one where the option is repeated.
std::vector<std::string> listed_choices(const std::vector<std::string>& choices) {
  if (choices.size() != 1) return choices;
  std::vector<std::string> listed;
  for (const std::string_view choice : split_words(choices[0], ",")) listed.emplace_back(choice);
  return listed;
}

NamedConstraint constraint_of_file(ConstraintKind kind, std::string_view flag,
                                   const std::string& path) {
  return {.spec = {.kind = kind, .text = read_whole_text(path)},
          .name = fmt::format("{} {}", flag, path)};
}

// A schema is an object, or its text.
std::string schema_text(const JsonCursor& schema) {
  return schema.is_string() ? schema.string() : to_json(schema.node().json());
}

// What is wrong with several constraints.
std::string surplus_text(const std::vector<NamedConstraint>& found) {
  return fmt::format("found {} and {}, expected one constraint only", found[0].name, found[1].name);
}

void set_constraint(NamedConstraint constraint, GenerateOptions& options) {
  options.constraint = std::move(constraint.spec);
  options.constraint_name = std::move(constraint.name);
}

}  // namespace

std::optional<NamedConstraint> chosen_constraint(const ConstraintChoice& choice) {
  std::vector<NamedConstraint> found;
  if (!choice.json_schema_file.empty()) {
    found.push_back(
        constraint_of_file(ConstraintKind::json_schema, "--json-schema", choice.json_schema_file));
  }
  if (choice.regex) {
    found.push_back({.spec = {.kind = ConstraintKind::regex, .text = *choice.regex},
                     .name = "--regex",
                     .is_argument = true});
  }
  if (!choice.grammar_file.empty()) {
    found.push_back(constraint_of_file(ConstraintKind::grammar, "--grammar", choice.grammar_file));
  }
  if (!choice.choices.empty()) {
    found.push_back(
        {.spec = {.kind = ConstraintKind::choice, .choices = listed_choices(choice.choices)},
         .name = "--choice",
         .is_argument = true});
  }
  if (found.empty()) return std::nullopt;
  if (found.size() > 1) throw UsageError(surplus_text(found));
  found[0].spec.strict = choice.strict;
  return std::move(found[0]);
}

std::optional<NamedConstraint> read_constraint(const Json& line, bool strict) {
  const JsonCursor fields = line_cursor(line);
  std::vector<NamedConstraint> found;
  if (const auto schema = fields.find("json_schema")) {
    found.push_back(
        {{.kind = ConstraintKind::json_schema, .text = schema_text(*schema)}, "json_schema"});
  }
  if (const auto regex = fields.find("regex")) {
    found.push_back({{.kind = ConstraintKind::regex, .text = regex->string()}, "regex"});
  }
  if (const auto grammar = fields.find("grammar")) {
    found.push_back({{.kind = ConstraintKind::grammar, .text = grammar->string()}, "grammar"});
  }
  if (const auto choice = fields.find("choice")) {
    found.push_back({{.kind = ConstraintKind::choice, .choices = read_texts(*choice)}, "choice"});
  }
  if (fields.boolean_or("json_object", false)) {
    found.push_back({{.kind = ConstraintKind::json_object}, "json_object"});
  }
  if (found.empty()) {
    if (!fields.find("strict")) return std::nullopt;
    throw Error(ErrorCode::invalid, "strict: found without json_schema beside it");
  }
  if (found.size() > 1) throw Error(ErrorCode::invalid, surplus_text(found));
  found[0].spec.strict = fields.boolean_or("strict", strict);
  return std::move(found[0]);
}

void throw_named(const NamedConstraint& constraint, const Error& error) {
  const std::string message = fmt::format("{}: {}", constraint.name, error.what());
  if (constraint.is_argument) throw UsageError(message);
  throw Error(error.code(), message);
}

Settings with_constraint(const Settings& settings) {
  Settings complete = settings;
  std::optional<NamedConstraint> constraint = chosen_constraint(settings.constraint);
  if (!constraint) return complete;
  try {
    compile_constraint(constraint->spec);
  } catch (const Error& error) {
    throw_named(*constraint, error);
  }
  set_constraint(std::move(*constraint), complete.generate);
  return complete;
}

void apply_constraint_fields(const Json& line, Settings& settings) {
  std::optional<NamedConstraint> constraint = read_constraint(line, settings.constraint.strict);
  if (constraint) set_constraint(std::move(*constraint), settings.generate);
}

}  // namespace paceline
