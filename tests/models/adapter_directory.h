// A directory of adapters in PEFT's format, removed at the end.
#pragma once

#include <filesystem>
#include <string>

#include "adapters/peft_directory.h"
#include "tests/models/random_adapter.h"
#include "tests/test_directory.h"

namespace paceline::testing {

class AdapterDirectory {
 public:
  const std::filesystem::path& path() const { return directory_.path(); }

  // Writes a random adapter. Returns its path.
  std::string write(const std::string& name, const DecoderConfig& config,
                    RandomAdapter options) const {
    Memory memory;
    options.gate_up_apart = true;
    write_peft_adapter(random_adapter(config, options, memory), AdapterBase{}, path() / name);
    return (path() / name).string();
  }

 private:
  TestDirectory directory_;
};

}  // namespace paceline::testing
