// How many descriptors, and so connections, this process may have.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace paceline {

// To as many as the system's administrator allows.
void raise_descriptor_limit();

// Accepting stops at 95 % of the descriptors that there may be.
int descriptor_mark();

// A warning if the descriptor limit is too low for the connections.
std::optional<std::string> lack_of_descriptors(size_t max_connections);

}  // namespace paceline
