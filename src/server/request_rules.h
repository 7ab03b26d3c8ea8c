// RequestRules are what this server's requests are held to, and ReceivedRequest is one of them.
#pragma once

#include <string>
#include <vector>

#include "protocol/request_fields.h"
#include "protocol/request_terms.h"

namespace paceline {

struct RequestRules {
  std::vector<std::string> model_names;  // what they may call the model
  RequestTerms terms;
};

struct ReceivedRequest {
  std::string body;
  std::string tenant;  // who shares no cached prefixes with others; "": everybody shares
};

// The model is one that the rules name, or left open, else it throws RequestError; the tenant
// becomes part of the cache's salt.
void apply_rules(const RequestRules& rules, const ReceivedRequest& request, CommonFields& common);

}  // namespace paceline
