// How the modules under test were compiled, which may differ from the tests' own code: a sanitized
// build may link what another one compiled of it (PACELINE_PLAIN_OBJECTS).
#pragma once

namespace paceline {

// Under a sanitizer, which makes everything 5 to 20 times as slow.
bool is_sanitized();
bool is_address_sanitized();
bool is_optimised();

}  // namespace paceline
