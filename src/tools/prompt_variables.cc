#include "tools/prompt_variables.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace paceline {
namespace {

constexpr size_t kMaxCandidates = 16;
constexpr size_t kMaxPromptVariables = 3;

bool is_variable_byte(char c) { return ('a' <= c && c <= 'z') || c == '_'; }

// The words of the template's source that contain "think" or "reason". Names that many templates
// share come first.
std::vector<std::string> candidate_names(std::string_view source) {
  std::vector<std::string> names{"enable_thinking", "thinking", "reasoning_effort"};
  std::erase_if(
      names, [&](const std::string& name) { return source.find(name) == std::string_view::npos; });
  std::set<std::string, std::less<>> seen(names.begin(), names.end());
  while (!source.empty() && names.size() < kMaxCandidates) {
    const auto begin = std::find_if(source.begin(), source.end(), is_variable_byte);
    source.remove_prefix(static_cast<size_t>(begin - source.begin()));
    const auto end = std::find_if_not(source.begin(), source.end(), is_variable_byte);
    const std::string_view word = source.substr(0, static_cast<size_t>(end - source.begin()));
    const bool is_about_thinking = word.find("think") != std::string_view::npos ||
                                   word.find("reason") != std::string_view::npos;
    if (is_about_thinking && seen.emplace(word).second) names.emplace_back(word);
    source.remove_prefix(word.size());
  }
  return names;
}

// Two values for a variable of this name that may make a difference.
std::array<Json, 2> candidate_values(std::string_view name) {
  if (name.find("effort") != std::string_view::npos) {
    return {Json(std::string("high")), Json(std::string("none"))};
  }
  if (name.find("budget") != std::string_view::npos) return {Json(int64_t{-1}), Json(int64_t{0})};
  return {Json(true), Json(false)};
}

}  // namespace

std::vector<PromptVariable> prompt_variables(TemplateProbe& probe) {
  std::vector<PromptVariable> variables;
  for (const std::string& name : candidate_names(probe.source())) {
    const std::array<Json, 2> values = candidate_values(name);
    const auto first = probe.generation_prompt({{name, values[0]}});
    const auto second = probe.generation_prompt({{name, values[1]}});
    if (!first || !second || *first == *second) continue;
    variables.push_back({name, values, {*first, *second}});
    if (variables.size() == kMaxPromptVariables) break;
  }
  return variables;
}

}  // namespace paceline
