// What mlx_lm.lora's config files call otherwise than this program's options do.
#pragma once

#include <string_view>
#include <vector>

#include "cli/config_entry.h"

namespace paceline {

// Entries of a config file of train, with the keys of mlx_lm.lora's files (adapter_path,
// grad_checkpoint, lora_parameters, optimizer_config, ...) as options; all others stay as they are.
// What only another choice of mlx_lm's uses is left out, as test_batches beside test: false. Throws
// Error "WHERE:LINE: KEY: ..." for what isn't supported.
std::vector<ConfigEntry> translate_mlx_entries(std::vector<ConfigEntry> entries,
                                               std::string_view where);

}  // namespace paceline
