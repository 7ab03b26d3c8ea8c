// RequestRules are what this server's requests are held to.
#pragma once

#include <string>
#include <vector>

#include "protocol/request_terms.h"

namespace paceline {

struct RequestRules {
  std::vector<std::string> model_names;  // what they may call the model
  RequestTerms terms;
};

}  // namespace paceline
