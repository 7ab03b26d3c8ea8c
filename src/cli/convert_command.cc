#include <fmt/format.h>

#include "cli/command.h"
#include "cli/figures.h"
#include "cli/gguf_output.h"
#include "cli/model_opening.h"
#include "cli/usage_error.h"
#include "load/chosen_types.h"
#include "load/gguf_conversion.h"

namespace paceline {
namespace {

std::string sizes_text(const ConvertedSizes& sizes, const std::string& to) {
  return fmt::format("{}: {} tensors, {} parameters, {} of weights (from {})", to,
                     sizes.num_tensors, grouped_number(sizes.parameters),
                     bytes_text(sizes.bytes_after), bytes_text(sizes.bytes_before));
}

ConvertedSizes to_gguf_file(const ModelSource& source, const Settings& settings,
                            ByteProgress& progress) {
  ThreadPool threads(settings.load.num_threads);
  return write_gguf(source, gguf_writing(settings, GgufFileType::as_stored, progress), threads);
}

ConvertedSizes to_directory(const ModelSource& source, const Settings& settings,
                            ByteProgress& progress) {
  GgufConversion conversion{.to = settings.output};
  if (settings.load.dtype != DataType::automatic) {
    conversion.dtype = choose_dtype(settings.load.dtype, DType::f32);
  }
  conversion.progress = progress.callback();
  return convert_gguf(source, conversion);
}

}  // namespace

int run_convert(const Settings& settings, Session& session) {
  if (settings.load.model.empty())
    throw UsageError(
        "nothing to read: give --model PATH, a GGUF file, or a directory to write as one");
  if (settings.output.empty())
    throw UsageError("nowhere to write: give --output DIR, or FILE.gguf");
  const bool to_gguf = writes_gguf(settings);
  session.explain_written(settings.output, " is complete");
  ByteProgress progress(session, "");
  const ModelSource source(model_path(settings));
  const ConvertedSizes sizes =
      to_gguf ? to_gguf_file(source, settings, progress) : to_directory(source, settings, progress);
  session.print_note(sizes_text(sizes, settings.output));
  return 0;
}

}  // namespace paceline
