#include "server/request_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/adapter_set.h"
#include "protocol/api_error.h"

namespace paceline {

void check_model_name(const std::optional<std::string>& model,
                      const std::vector<std::string>& names) {
  if (!model || std::find(names.begin(), names.end(), *model) != names.end()) return;
  throw RequestError(
      "model", ErrorReason::model_not_found,
      fmt::format("model: found \"{}\", this server has {}", *model, fmt::join(names, ", ")));
}

std::vector<std::string> accepted_names(const TextModel& model, const RequestRules& rules) {
  std::vector<std::string> names = rules.model_names;
  if (model.adapters == nullptr) return names;
  for (std::string& name : model.adapters->names()) names.push_back(std::move(name));
  return names;
}

void apply_rules(const TextModel& model, const RequestRules& rules, const std::string& tenant,
                 CommonFields& common) {
  const auto& own = rules.model_names;
  if (common.model && std::find(own.begin(), own.end(), *common.model) == own.end()) {
    check_model_name(common.model, accepted_names(model, rules));
    common.lora = *common.model;
  }
  common.cache_salt.insert(0, tenant);
}

void check_response_size(const RequestRules& rules, int64_t num_bytes, std::string_view param) {
  if (num_bytes <= rules.max_response_bytes) return;
  constexpr double kMebibyte = 1 << 20;
  throw invalid_field(param,
                      fmt::format("the response would hold about {:.1f} MiB, the limit is {:.1f} "
                                  "(--max-response-size); send fewer inputs at once",
                                  static_cast<double>(num_bytes) / kMebibyte,
                                  static_cast<double>(rules.max_response_bytes) / kMebibyte));
}

}  // namespace paceline
