// Starts a generation that goes on without its connection.
#pragma once

#include <memory>

#include "server/api_call.h"
#include "server/prepared_generation.h"

namespace paceline {

// Answers the call with what its writer says of an accepted one, and computes it.
void start_in_background(const std::shared_ptr<ApiCall>& call, PreparedGeneration prepared);

}  // namespace paceline
