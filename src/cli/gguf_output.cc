#include "cli/gguf_output.h"

#include "cli/usage_error.h"

namespace paceline {
namespace {

GgufFileType chosen_gguf_type(const Settings& settings, GgufFileType otherwise) {
  const bool has_dtype = settings.load.dtype != "auto";
  if (!settings.gguf_type.empty() && has_dtype) {
    throw UsageError("--gguf-type and --dtype both set the type: give one of them");
  }
  if (!settings.gguf_type.empty()) return parse_gguf_file_type(settings.gguf_type).value();
  if (!has_dtype) return otherwise;
  const DType dtype = parse_dtype(settings.load.dtype).value();
  if (dtype == DType::f32) return GgufFileType::f32;
  return dtype == DType::f16 ? GgufFileType::f16 : GgufFileType::bf16;
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
