#include "server/page_options.h"

#include "base/json_writer.h"
#include "text/generation_options.h"

namespace paceline {
namespace {

bool is_on_page(const GenerationOption& option) {
  const bool is_setting =
      option.group == GenerationGroup::sampling || option.group == GenerationGroup::stopping;
  const GenerationKind kind = kind_of(option);
  return is_setting && (kind == GenerationKind::number || kind == GenerationKind::integer ||
                        kind == GenerationKind::seed);
}

}  // namespace

std::string page_options_module() {
  // Greater ones are no numbers to JavaScript.
  constexpr double kMaxSeed = 9007199254740991;
  std::string json;
  JsonWriter writer(json);
  writer.begin_array();
  for (const GenerationOption& option : kGenerationOptions) {
    if (!is_on_page(option)) continue;
    const GenerationKind kind = kind_of(option);
    const bool is_seed = kind == GenerationKind::seed;
    writer.begin_object().member("name", option.name).member("help", option.help);
    writer.member("min", is_seed ? 0 : option.range.min);
    writer.member("max", is_seed ? kMaxSeed : option.range.max);
    writer.member("whole", kind != GenerationKind::number);
    const bool is_own = option.own_reader == OwnReader::requests;
    writer.member("unset", is_own ? "default" : option.default_words).end_object();
  }
  writer.end_array();
  return "// The numbers among the generation options.\nexport const OPTIONS = " + json + ";\n";
}

}  // namespace paceline
