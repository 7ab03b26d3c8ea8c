// Explains a SIGBUS: a mapped file was truncated, or its disk failed, while it was in use.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace paceline {

// Names the file that `bytes` are mapped from, while it lives. At most 1,024 files at once have
// names.
class MappingName {
 public:
  MappingName() = default;
  MappingName(std::span<const std::byte> bytes, const std::string& path);
  MappingName(MappingName&& other) noexcept;
  MappingName& operator=(MappingName&& other) noexcept;
  ~MappingName();

 private:
  size_t slot_ = 0;  // 0: none
};

// From now on a SIGBUS inside a named mapping prints the file's name to standard error and ends the
// process with `exit_code`; any other SIGBUS keeps its default action.
void exit_on_bus_error(int exit_code);

}  // namespace paceline
