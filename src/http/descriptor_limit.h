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

// A sentence when there can't be so many connections, because the descriptors end sooner.
std::optional<std::string> lack_of_descriptors(size_t max_connections);

}  // namespace paceline
