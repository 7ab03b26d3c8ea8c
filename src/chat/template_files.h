// The chat templates that a model's files carry.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/model_files.h"

namespace paceline {

struct TemplateFile {
  std::string name;   // of the template among several: "default", "tool_use"
  std::string where;  // the file it stands in, for messages
  std::string source;
};

// In the order in which they count: chat_template.jinja with additional_chat_templates/*.jinja,
// else chat_template.json, else chat_template of tokenizer_config.json. Empty when there is none.
// Throws Error invalid naming the file and field that is wrong.
std::vector<TemplateFile> find_template_files(const ModelFiles& files);

}  // namespace paceline
