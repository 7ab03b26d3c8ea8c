// Writes a file of prepared weights.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/thread_pool.h"
#include "prepared/layout.h"

namespace paceline {

// Replaces a file of that name once the new one is complete. Returns the bytes written. Throws
// Error with the path and the system's reason: exhausted when there is no space.
uint64_t write_prepared(const std::filesystem::path& path, const PreparedTable& table,
                        ThreadPool& threads);

}  // namespace paceline
