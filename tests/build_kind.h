// How the modules under test were compiled, which may differ from the tests' own code: a sanitized
// build may link what another one compiled of it (PACELINE_PLAIN_OBJECTS).
#pragma once

namespace paceline {

// Under a sanitizer, which makes everything 5 to 20 times as slow.
bool is_sanitized();
bool is_address_sanitized();
bool is_optimised();
// The kernels of each instruction set as the other modules; else only those of the newest are, and
// the reference's (PACELINE_SANITIZED_KERNELS).
bool are_all_kernels_sanitized();

}  // namespace paceline
