#include <fmt/format.h>

#include "adapters/adapter_files.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/gguf_output.h"
#include "cli/model_opening.h"
#include "cli/usage_error.h"
#include "load/chosen_types.h"
#include "load/fuse_model.h"
#include "load/model_adapter_base.h"

namespace paceline {
namespace {

FuseOptions fuse_options(const Settings& settings) {
  FuseOptions options{.to = settings.output};
  if (settings.load.dtype != DataType::automatic) {
    options.dtype = choose_dtype(settings.load.dtype, DType::f32);
  }
  if (settings.bits) {
    options.format = {.bits = static_cast<int>(*settings.bits),
                      .group_size = settings.group_size.value_or(AffineFormat().group_size)};
  }
  return options;
}

std::string fused_text(const FusedSizes& sizes, const std::string& to) {
  std::string text =
      fmt::format("{}: {} {} fused, {} parameters, ", to, sizes.num_fused,
                  sizes.num_fused == 1 ? "matrix" : "matrices", grouped_number(sizes.parameters));
  if (sizes.quantized_parameters > 0) {
    text += fmt::format("{} of them quantised, ", grouped_number(sizes.quantized_parameters));
  }
  return text + fmt::format("{} of weights", bytes_text(sizes.bytes_after));
}

}  // namespace

int run_fuse(const Settings& settings, Session& session) {
  if (settings.adapter.empty()) throw UsageError("nothing to add: give --lora PATH, an adapter");
  if (settings.output.empty())
    throw UsageError("nowhere to write: give --output DIR, or FILE.gguf");
  if (settings.group_size && !settings.bits) {
    throw UsageError("--group-size is for quantised matrices: give --bits too");
  }
  FuseOptions options = fuse_options(settings);
  session.explain_written(settings.output, " is complete");
  ByteProgress progress(session, "");
  options.progress = progress.callback();
  if (writes_gguf(settings)) {
    if (settings.bits)
      throw UsageError("--bits is for directories: give --gguf-type for a GGUF file");
    options.gguf_type = gguf_writing(settings, GgufFileType::as_stored, progress).type;
  }
  const ModelSource source(model_path(settings));
  Memory memory;
  const Adapter adapter = read_adapter(settings.adapter, read_adapter_base(source), memory);
  ThreadPool threads(settings.load.num_threads);
  const FusedSizes sizes = fuse_model(source, adapter, options, threads);
  session.print_note(fused_text(sizes, settings.output));
  return 0;
}

}  // namespace paceline
