#include "protocol/prompt_list.h"

#include <fmt/format.h>

namespace paceline {

std::string PromptList::name(std::string_view field, size_t index) const {
  return is_array ? fmt::format("{}[{}]", field, index) : std::string(field);
}

PromptList read_prompts(const FieldValue& value) {
  if (value.json().is_string()) return {.prompts = {value.text()}};
  const Json& first = value.at().array()[0];
  if (first.is_number()) return {.prompts = {value.token_ids()}};
  PromptList list{.is_array = true};
  for (const FieldValue& item : value.items()) {
    if (first.is_string()) {
      list.prompts.emplace_back(item.text());
    } else {
      list.prompts.emplace_back(item.token_ids());
    }
  }
  return list;
}

}  // namespace paceline
