// Options that say what a text must be.
#include "cli/option_groups.h"

namespace paceline {
namespace {

constexpr CommandSet kConstraining = kWriting | set_of({CommandId::grammar});

constexpr OptionDef kConstraintOptions[] = {
    {.name = "json-schema",
     .placeholder = "FILE",
     .kind = OptionKind::text,
     .help = "JSON Schema that the texts have to follow, read from FILE.",
     .group = OptionGroup::constraint,
     .commands = kConstraining,
     .apply = [](Settings& s,
                 const OptionValue& v) { s.constraint.json_schema_file = as_text(v); }},
    {.name = "regex",
     .placeholder = "REGEX",
     .kind = OptionKind::text,
     .help = "Regular expression that has to match each whole text.",
     .group = OptionGroup::constraint,
     .commands = kConstraining,
     .apply = [](Settings& s, const OptionValue& v) { s.constraint.regex = as_text(v); }},
    {.name = "grammar",
     .aliases = "--grammar-file",
     .placeholder = "FILE",
     .kind = OptionKind::text,
     .help = "Grammar of the texts, GBNF or Lark's notation, read from FILE.",
     .group = OptionGroup::constraint,
     .commands = kConstraining,
     .apply = [](Settings& s, const OptionValue& v) { s.constraint.grammar_file = as_text(v); }},
    {.name = "choice",
     .aliases = "--choices",
     .placeholder = "TEXT,TEXT",
     .kind = OptionKind::texts,
     .help = "Allowed texts; repeat the option for texts with commas.",
     .group = OptionGroup::constraint,
     .commands = kConstraining,
     .apply = [](Settings& s, const OptionValue& v) { s.constraint.choices = as_texts(v); }},
    {.name = "strict",
     .help = "Refuse a JSON Schema with parts that can't be enforced, such as an unknown format.",
     .group = OptionGroup::constraint,
     .commands = kConstraining,
     .needs = "json-schema jsonl",
     .apply = [](Settings& s, const OptionValue& v) { s.constraint.strict = as_flag(v); }},
};

}  // namespace

std::span<const OptionDef> constraint_options() { return kConstraintOptions; }

}  // namespace paceline
