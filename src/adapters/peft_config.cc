#include "adapters/peft_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "adapters/peft_refusals.h"

namespace paceline {
namespace {

constexpr size_t kMaxPatterns = 2048;  // of rank_pattern or alpha_pattern
constexpr size_t kMaxListItems = 65'536;
const std::string kLayerGroup = "idx";

template <class Use>
void for_each_item(const JsonCursor& field, const Use& use) {
  if (field.num_items() > kMaxListItems) {
    field.fail(ErrorCode::exhausted,
               fmt::format("{} items, at most {} are allowed", field.num_items(), kMaxListItems));
  }
  for (const JsonCursor& item : field.items()) use(item);
}

std::vector<std::string> read_names(const JsonCursor& field) {
  std::vector<std::string> names;
  for_each_item(field, [&](const JsonCursor& item) { names.push_back(item.string()); });
  std::ranges::sort(names);
  return names;
}

// The members of rank_pattern or alpha_pattern, in order.
template <class T, class Read>
void read_patterns(const JsonCursor& config, std::string_view key, ModuleValues<T>& patterns,
                   const Read& read) {
  const auto field = config.find(key);
  if (!field) return;
  const auto members = field->members();
  if (members.size() > kMaxPatterns) {
    field->fail(ErrorCode::exhausted,
                fmt::format("{} keys, at most {} are allowed", members.size(), kMaxPatterns));
  }
  for (const auto& [name, value] : members) {
    const JsonCursor cursor = field->entry(name, value);
    patterns.add(name, read(cursor), cursor.name());
  }
}

// Whether the module or an end of it behind a dot is among the sorted names.
bool has_end_of(const std::vector<std::string>& names, std::string_view module) {
  while (true) {
    if (std::ranges::binary_search(names, module)) return true;
    const size_t dot = module.find('.');
    if (dot == module.npos) return false;
    module.remove_prefix(dot + 1);
  }
}

bool ends_with_part(std::string_view module, std::string_view part) {
  if (!module.ends_with(part)) return false;
  return module.size() == part.size() || module[module.size() - part.size() - 1] == '.';
}

}  // namespace

bool PeftConfig::Choice::contains(std::string_view module, MatchBudget& budget) const {
  if (pattern) return pattern->matches(module, budget);
  return has_end_of(names, module);
}

PeftConfig::Choice PeftConfig::read_choice(const JsonCursor& field) {
  Choice choice;
  if (field.is_string()) {
    choice.pattern.emplace(field.string(), ModulePattern::Extent::whole, field.name());
    return choice;
  }
  if (!field.is_array()) field.mismatch("a list of names or a regular expression");
  choice.names = read_names(field);
  return choice;
}

PeftConfig::PeftConfig(const Json& json, const std::string& where, int64_t max_rank) {
  const JsonCursor config(json, where);
  refuse_unsupported_peft(config);
  if (const auto name = config.find("base_model_name_or_path")) base_name_ = name->string();
  const NumberRange ranks{.min = 1, .max = static_cast<double>(max_rank)};
  const auto read_rank = [&](const JsonCursor& field) { return field.integer(ranks); };
  if (const auto rank = config.find("r")) rank_ = read_rank(*rank);
  if (const auto alpha = config.find("lora_alpha")) alpha_ = alpha->number();
  is_rank_stabilised_ = config.boolean_or("use_rslora", false);
  read_patterns(config, "rank_pattern", rank_pattern_, read_rank);
  read_patterns(config, "alpha_pattern", alpha_pattern_,
                [](const JsonCursor& field) { return field.number(); });
  read_targets(config);
  read_layers(config);
}

void PeftConfig::read_targets(const JsonCursor& config) {
  constexpr std::string_view kAllLinear = "all-linear";
  if (const auto targets = config.find("target_modules")) {
    std::string lowered = targets->is_string() ? targets->string() : "";
    for (char& c : lowered) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    targets_all_ = lowered == kAllLinear;
    if (!targets_all_) targets_ = read_choice(*targets);
  }
  if (const auto excluded = config.find("exclude_modules")) excluded_ = read_choice(*excluded);
  if (const auto parameters = config.find("target_parameters")) {
    target_parameters_ = read_names(*parameters);
  }
}

// An empty list means all layers, as without the field.
void PeftConfig::read_layers(const JsonCursor& config) {
  const NumberRange indices{.min = 0, .max = 1 << 20};
  const auto layers = config.find("layers_to_transform");
  if (!layers) return;
  if (targets_ && targets_->pattern) {
    layers->fail("can't be used when target_modules is a string; expected a list of names there");
  }
  if (layers->is_array()) {
    for_each_item(*layers,
                  [&](const JsonCursor& item) { layers_.push_back(item.integer(indices)); });
  } else {
    layers_.push_back(layers->integer(indices));
  }
  const auto add_pattern = [this](const JsonCursor& field) {
    layer_patterns_.emplace_back(
        fmt::format("(?:^|.*?\\.){}\\.(?P<{}>\\d+)\\.", field.string(), kLayerGroup),
        ModulePattern::Extent::begin, field.name());
  };
  const auto pattern = config.find("layers_pattern");
  if (pattern && pattern->is_array()) {
    for_each_item(*pattern, add_pattern);
  } else if (pattern && !pattern->string().empty()) {
    add_pattern(*pattern);
  }
  if (layer_patterns_.empty()) {
    layer_patterns_.emplace_back(fmt::format(".*?\\.[^.]*\\.(?P<{}>\\d+)\\.", kLayerGroup),
                                 ModulePattern::Extent::begin, layers->name());
  }
}

bool PeftConfig::is_in_layers(std::string_view module, MatchBudget& budget) const {
  if (layers_.empty()) return true;
  for (const ModulePattern& pattern : layer_patterns_) {
    const auto digits = pattern.find_group(module, kLayerGroup, budget);
    if (!digits) continue;
    int64_t layer = -1;
    std::from_chars(digits->data(), digits->data() + digits->size(), layer);
    return std::ranges::find(layers_, layer) != layers_.end();
  }
  return false;
}

bool PeftConfig::targets(std::string_view module, MatchBudget& budget) const {
  if (excluded_ && excluded_->contains(module, budget)) return false;
  if (targets_all_) return !ends_with_part(module, "lm_head");
  if (!targets_) return true;
  return targets_->contains(module, budget) && is_in_layers(module, budget);
}

bool PeftConfig::targets_parameter(std::string_view parameter) const {
  return has_end_of(target_parameters_, parameter);
}

int64_t PeftConfig::rank_of(std::string_view module, MatchBudget& budget) const {
  const auto* const entry = rank_pattern_.find(module, budget);
  return entry ? entry->value : rank_;
}

double PeftConfig::alpha_of(std::string_view module, MatchBudget& budget) const {
  const auto* const entry = alpha_pattern_.find(module, budget);
  return entry ? entry->value : alpha_;
}

double PeftConfig::scale_of(double alpha, int64_t rank) const {
  const auto divisor = static_cast<double>(rank);
  return alpha / (is_rank_stabilised_ ? std::sqrt(divisor) : divisor);
}

}  // namespace paceline
