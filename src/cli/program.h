// The program: arguments in, exit code out.
#pragma once

#include <string>
#include <vector>

namespace paceline {

// 0 done, 1 failed, 2 bad usage, 128 + signal interrupted.
int run_program(const std::vector<std::string>& arguments);

}  // namespace paceline
