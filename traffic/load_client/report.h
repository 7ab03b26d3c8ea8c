// Reports the results of a load, as a table and as JSON.
#pragma once

#include <string>

#include "traffic/load_client/load.h"

namespace paceline::traffic {

std::string report_table(const LoadPlan& plan, const Load& load);
std::string report_json(const LoadPlan& plan, const Load& load);

// True without wrong tokens, errors and lost connections.
bool is_flawless(const LoadPlan& plan, const Load& load);

}  // namespace paceline::traffic
