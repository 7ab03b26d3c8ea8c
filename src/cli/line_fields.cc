#include "cli/line_fields.h"

#include <vector>

#include "base/error.h"
#include "cli/option_value.h"

namespace paceline {

void check_line_keys(const Json& line, std::initializer_list<FieldNames> lists) {
  std::vector<std::string_view> known;
  for (const FieldNames list : lists) known.insert(known.end(), list.begin(), list.end());
  line_cursor(line).expect_keys(known);
}

void apply_option_fields(const Json& line, FieldNames options, Settings& settings) {
  for (std::string_view name : options) {
    const auto value = line_cursor(line).find(name);
    if (!value) continue;
    const OptionDef* option = find_option(name);
    PL_CHECK(option != nullptr, "a line's field is no option");
    apply_option(*option, read_option_value(*option, *value), settings);
  }
}

InputItem read_input_item(const Item& item, const Settings& settings, FieldNames options) {
  static constexpr std::string_view kFields[] = {"text", "ids"};
  InputItem input{.settings = settings};
  if (const Json* line = item.line()) {
    check_line_keys(*line, {kFields, options});
    apply_option_fields(*line, options, input.settings);
    input.prompt = read_prompt(*line, "text", "ids");
    input.field = std::holds_alternative<std::string>(input.prompt) ? "text" : "ids";
  } else {
    input.prompt = item.prompt();
  }
  return input;
}

Prompt read_prompt(const Json& line, std::string_view text_key, std::string_view ids_key) {
  const auto text = line_cursor(line).find(text_key);
  const auto ids = line_cursor(line).find(ids_key);
  if (!text && !ids) {
    throw error_of(ErrorCode::invalid, "found neither {} nor {}", text_key, ids_key);
  }
  if (text && ids) {
    throw error_of(ErrorCode::invalid, "found both {} and {}, expected one of them", text_key,
                   ids_key);
  }
  if (text) return text->string();
  return read_token_ids(*ids);
}

}  // namespace paceline
