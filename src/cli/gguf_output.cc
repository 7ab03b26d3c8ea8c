#include "cli/gguf_output.h"

#include "cli/usage_error.h"

namespace paceline {
namespace {

GgufFileType chosen_gguf_type(const Settings& settings, GgufFileType otherwise) {
  const bool has_dtype = settings.load.dtype != DataType::automatic;
  if (!settings.gguf_type.empty() && has_dtype) {
    throw UsageError("--gguf-type and --dtype both set the type: give one of them");
  }
  if (!settings.gguf_type.empty()) return parse_gguf_file_type(settings.gguf_type).value();
  if (!has_dtype) return otherwise;
  if (settings.load.dtype == DataType::float32) return GgufFileType::f32;
  return settings.load.dtype == DataType::float16 ? GgufFileType::f16 : GgufFileType::bf16;
}

}  // namespace

bool writes_gguf(const Settings& settings) {
  const bool is_gguf = is_gguf_name(settings.output);
  if (!is_gguf && !settings.gguf_type.empty()) {
    throw UsageError("--gguf-type is for GGUF files: give --output FILE.gguf too");
  }
  return is_gguf;
}

GgufWriting gguf_writing(const Settings& settings, GgufFileType otherwise, ByteProgress& progress) {
  return {.to = settings.output,
          .type = chosen_gguf_type(settings, otherwise),
          .progress = progress.callback()};
}

}  // namespace paceline
