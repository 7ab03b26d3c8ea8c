// Shared by the tests of chat/: rendering from text, and lines of JSON.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "chat/template_renderer.h"

namespace paceline {

// Renders `source` with the members of a JSON object as its variables.
inline std::string render(std::string_view source, std::string_view variables_json = "{}",
                          TemplateLimits limits = {}) {
  NamedJson variables;
  const Json json = parse_json(variables_json, "variables");
  for (const auto& [name, value] : json.as_object("variables")) variables.emplace_back(name, value);
  const CivilTime noon{.year = 2026, .month = 3, .day = 7, .hour = 12};
  return TemplateRenderer(source, "test").render(variables, noon, limits);
}

inline std::string printed(std::string_view expression) {
  return "{{ " + std::string(expression) + " }}";
}

// Expressions and what they print.
inline void expect_values(std::initializer_list<std::pair<const char*, const char*>> cases) {
  for (const auto& [expression, expected] : cases) {
    SCOPED_TRACE(expression);
    std::string found;
    EXPECT_NO_THROW(found = render(printed(expression)));
    EXPECT_EQ(found, expected);
  }
}

inline std::vector<std::string> lines_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace paceline
