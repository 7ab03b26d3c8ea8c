// The filter tojson: the output of Python's json.dumps.
#pragma once

#include <optional>
#include <string>

#include "chat/template_value.h"

namespace paceline {

struct PythonJsonOptions {
  bool ensure_ascii = false;
  std::optional<std::string> indent = {};  // of one level; nothing: all on one line
  std::optional<std::string> item_separator = {};
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Throws TemplateError for what json.dumps can't write, exhausted beyond `limit` bytes.
std::string python_json(const TemplateValue& value, const PythonJsonOptions& options, size_t limit);

}  // namespace paceline
