// What --output FILE.gguf and --gguf-type ask for.
#pragma once

#include "cli/model_opening.h"
#include "cli/settings.h"
#include "load/write_gguf.h"

namespace paceline {

// Whether --output names a GGUF file. Throws UsageError for --gguf-type with another output.
bool writes_gguf(const Settings& settings);

// The type is that of --gguf-type or --dtype, else `otherwise`. Throws UsageError when both are
// given.
GgufWriting gguf_writing(const Settings& settings, GgufFileType otherwise, ByteProgress& progress);

}  // namespace paceline
