// Every option of every command, in the order in which the help shows them.
#include "cli/option_groups.h"

namespace paceline {

std::span<const OptionDef> option_table() {
  static const std::vector<OptionDef> table = [] {
    std::vector<OptionDef> all;
    for (const auto group :
         {input_options(), constraint_options(), generation_options(), measuring_options(),
          quantizing_options(), model_options(), adapter_options(), batching_options(),
          speculation_options(), serving_options(), general_options(), training_options()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    return all;
  }();
  return table;
}

}  // namespace paceline
