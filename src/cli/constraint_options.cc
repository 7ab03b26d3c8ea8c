// Options that say what a text must be.
#include "cli/option_groups.h"

namespace paceline {
namespace {

constexpr CommandSet kConstraining = kWriting | set_of({CommandId::grammar});

constexpr OptionDef kConstraintOptions[] = {
    {.name = "json-schema",
     .placeholder = "FILE",
     .help = "JSON Schema that the texts have to follow, read from FILE.",
     .to = kTo<&Settings::constraint, &ConstraintChoice::json_schema_file>},
    {.name = "regex",
     .placeholder = "REGEX",
     .help = "Regular expression that has to match each whole text.",
     .to = kTo<&Settings::constraint, &ConstraintChoice::regex>},
    {.name = "grammar",
     .aliases = "--grammar-file",
     .placeholder = "FILE",
     .help = "Grammar of the texts, GBNF or Lark's notation, read from FILE.",
     .to = kTo<&Settings::constraint, &ConstraintChoice::grammar_file>},
    {.name = "choice",
     .aliases = "--choices",
     .placeholder = "TEXT,TEXT",
     .help = "Allowed texts; repeat the option for texts with commas.",
     .to = kTo<&Settings::constraint, &ConstraintChoice::choices>},
    {.name = "strict",
     .help = "Refuse a JSON Schema with parts that can't be enforced, such as an unknown format.",
     .needs = "json-schema jsonl",
     .to = kTo<&Settings::constraint, &ConstraintChoice::strict>},
};

}  // namespace

std::vector<OptionDef> constraint_options() {
  return section(OptionGroup::constraint, kConstraining, kConstraintOptions);
}

}  // namespace paceline
