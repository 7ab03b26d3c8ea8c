#include "cli/line_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/option_value.h"

namespace paceline {

void check_line_keys(const Json& line, FieldNames own, FieldNames options) {
  std::vector<std::string_view> known(own.begin(), own.end());
  known.insert(known.end(), options.begin(), options.end());
  for (const auto& [key, value] : line.as_object("line")) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw Error(ErrorCode::invalid,
                  fmt::format("unknown field {}{}", key, did_you_mean(key, known)));
    }
  }
}

void apply_option_fields(const Json& line, FieldNames options, Settings& settings) {
  for (std::string_view name : options) {
    const Json* value = line.find_value(name);
    if (value == nullptr) continue;
    const OptionDef* option = find_option(name);
    PL_CHECK(option != nullptr, "a line's field is no option");
    apply_option(*option, read_option_value(*option, *value, name), settings);
  }
}

Prompt read_prompt(const Json& line, std::string_view text_key, std::string_view ids_key) {
  const Json* text = line.find_value(text_key);
  const Json* ids = line.find_value(ids_key);
  if (text == nullptr && ids == nullptr) {
    throw Error(ErrorCode::invalid, fmt::format("found neither {} nor {}", text_key, ids_key));
  }
  if (text != nullptr && ids != nullptr) {
    throw Error(ErrorCode::invalid,
                fmt::format("found both {} and {}, expected one of them", text_key, ids_key));
  }
  if (text != nullptr) return text->as_string(text_key);
  return read_token_ids(*ids, ids_key);
}

}  // namespace paceline
