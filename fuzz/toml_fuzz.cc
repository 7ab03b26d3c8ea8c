// Any bytes are either a config file in TOML, whose values read the same after being written, or
// an Error.
#include "base/error.h"
#include "base/utf8.h"
#include "cli/config_text.h"
#include "fuzz/config_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  paceline::fuzz::check_config_text(data, size, paceline::parse_toml,
                                    {.between = " = ", .infinity = "inf"});
  return 0;
}
