// What a load came to, as a table and as JSON.
#pragma once

#include <string>

#include "traffic/load_client/load.h"

namespace paceline::traffic {

std::string report_table(const LoadPlan& plan, const Load& load);
std::string report_json(const LoadPlan& plan, const Load& load);

// No token wrong, nothing that isn't an answer, no connection lost.
bool is_flawless(const LoadPlan& plan, const Load& load);

}  // namespace paceline::traffic
