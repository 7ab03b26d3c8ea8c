// Writing a file of prepared weights.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/thread_pool.h"
#include "prepared/layout.h"

namespace paceline {

// Under its name only once it is whole; replaces what stands there. Throws Error with the path and
// the system's reason: exhausted when there is no room. The bytes written.
uint64_t write_prepared(const std::filesystem::path& path, const PreparedTable& table,
                        ThreadPool& threads);

}  // namespace paceline
