// RequestRules are the limits of a server's requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/request_error.h"
#include "protocol/field_value.h"
#include "protocol/request_fields.h"
#include "text/text_model.h"

namespace paceline {

struct RequestRules {
  std::vector<std::string> model_names;     // accepted names of the model
  std::vector<std::string> all_names = {};  // of all models of the server, in messages
  bool accepts_any_name = false;            // an unknown name is the model's
  RequestTerms terms;
  int64_t max_response_bytes = 0;
};

// Throws RequestError naming `param` when a response of about `num_bytes` exceeds the limit.
void check_response_size(const RequestRules& rules, int64_t num_bytes, std::string_view param);

// For a name that is none of the server's.
RequestError unknown_model(std::string_view name, const std::vector<std::string>& names);

// The adapter that a request's `model` names; empty: the model itself. Throws RequestError for the
// name of neither.
std::string adapter_named(const TextModel& model, const RequestRules& rules,
                          const std::optional<std::string>& name);

// Throws RequestError unless the model is absent or an accepted name; sets the adapter that it
// names. Adds the tenant to the cache's salt: cached prefixes are shared within one tenant.
void apply_rules(const TextModel& model, const RequestRules& rules, const std::string& tenant,
                 CommonFields& common);

}  // namespace paceline
