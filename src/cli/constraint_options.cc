// Options that say what a text must be.
#include "cli/option_groups.h"

namespace paceline {
namespace {

constexpr CommandSet kConstraining = kWriting | set_of({CommandId::grammar});

constexpr OptionDef kConstraintOptions[] = {
    option("json-schema", kTo<&Settings::constraint, &ConstraintChoice::json_schema_file>,
           "JSON Schema that the texts have to follow, read from FILE.", {.placeholder = "FILE"}),
    option("regex", kTo<&Settings::constraint, &ConstraintChoice::regex>,
           "Regular expression that has to match each whole text.", {.placeholder = "REGEX"}),
    option("grammar", kTo<&Settings::constraint, &ConstraintChoice::grammar_file>,
           "Grammar of the texts, GBNF or Lark's notation, read from FILE.",
           {.aliases = "--grammar-file", .placeholder = "FILE"}),
    option("choice", kTo<&Settings::constraint, &ConstraintChoice::choices>,
           "Allowed texts; repeat the option for texts with commas.",
           {.aliases = "--choices", .placeholder = "TEXT,TEXT"}),
    option("strict", kTo<&Settings::constraint, &ConstraintChoice::strict>,
           "Refuse a JSON Schema with parts that can't be enforced, such as an unknown format.",
           {.needs = "json-schema jsonl"}),
};

}  // namespace

std::vector<OptionDef> constraint_options() {
  return section(OptionGroup::constraint, kConstraining, kConstraintOptions);
}

}  // namespace paceline
