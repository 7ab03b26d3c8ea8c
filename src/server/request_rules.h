// RequestRules are the limits of a server's requests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_fields.h"
#include "protocol/request_terms.h"
#include "text/text_model.h"

namespace paceline {

struct RequestRules {
  std::vector<std::string> model_names;  // accepted names of the model
  RequestTerms terms;
  int64_t max_response_bytes = 0;
};

// Throws RequestError naming `param` when a response of about `num_bytes` exceeds the limit.
void check_response_size(const RequestRules& rules, int64_t num_bytes, std::string_view param);

// Throws RequestError unless the model is absent or one of `names`.
void check_model_name(const std::optional<std::string>& model,
                      const std::vector<std::string>& names);

// The names that requests may give as their model: the rules', then those of the adapters.
std::vector<std::string> accepted_names(const TextModel& model, const RequestRules& rules);

// Throws RequestError unless the model is absent or an accepted name; sets the adapter that it
// names. Adds the tenant to the cache's salt: cached prefixes are shared within one tenant.
void apply_rules(const TextModel& model, const RequestRules& rules, const std::string& tenant,
                 CommonFields& common);

}  // namespace paceline
