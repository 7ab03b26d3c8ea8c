// A directory of adapters in PEFT's format, removed at the end.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "adapters/peft_directory.h"
#include "tests/models/random_adapter.h"

namespace paceline::testing {

class AdapterDirectory {
 public:
  AdapterDirectory() { std::filesystem::create_directories(path_); }
  ~AdapterDirectory() { std::filesystem::remove_all(path_); }
  AdapterDirectory(const AdapterDirectory&) = delete;
  AdapterDirectory& operator=(const AdapterDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Writes a random adapter. Returns its path.
  std::string write(const std::string& name, const DecoderConfig& config,
                    const RandomAdapter& options) const {
    Memory memory;
    write_peft_adapter(random_adapter(config, options, memory), AdapterBase{}, path_ / name);
    return (path_ / name).string();
  }

 private:
  static int next_number() {
    static int number = 0;
    return ++number;
  }

  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() /
      ("paceline_adapters_" + std::to_string(::getpid()) + "_" + std::to_string(next_number()));
};

}  // namespace paceline::testing
