#include "server/request_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/adapter_set.h"
#include "protocol/api_error.h"

namespace paceline {

RequestError unknown_model(std::string_view name, const std::vector<std::string>& names) {
  return {"model", ErrorReason::model_not_found,
          fmt::format("model: found \"{}\", this server has {}", name, fmt::join(names, ", "))};
}

std::string adapter_named(const TextModel& model, const RequestRules& rules,
                          const std::optional<std::string>& name) {
  const auto& own = rules.model_names;
  if (!name || std::find(own.begin(), own.end(), *name) != own.end()) return {};
  if (model.adapters != nullptr && model.adapters->find(*name) != nullptr) return *name;
  if (rules.accepts_any_name) return {};
  std::vector<std::string> names = rules.all_names;
  if (model.adapters != nullptr) {
    for (std::string& adapter : model.adapters->names()) names.push_back(std::move(adapter));
  }
  throw unknown_model(*name, names);
}

void apply_rules(const TextModel& model, const RequestRules& rules, const std::string& tenant,
                 CommonFields& common) {
  common.lora = adapter_named(model, rules, common.model);
  common.cache_salt.insert(0, tenant);
}

void check_response_size(const RequestRules& rules, int64_t num_bytes, std::string_view param) {
  if (num_bytes <= rules.max_response_bytes) return;
  constexpr double kMebibyte = 1 << 20;
  throw invalid_field(param,
                      "the response would hold about {:.1f} MiB, the limit is {:.1f} "
                      "(--max-response-size); send fewer inputs at once",
                      static_cast<double>(num_bytes) / kMebibyte,
                      static_cast<double>(rules.max_response_bytes) / kMebibyte);
}

}  // namespace paceline
