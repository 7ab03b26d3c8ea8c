#include <fmt/format.h>

#include "cli/command.h"
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "cli/usage_error.h"
#include "load/gguf_conversion.h"

namespace paceline {
namespace {

std::string sizes_text(const ConvertedSizes& sizes, const std::string& to) {
  return fmt::format("{}: {} tensors, {} parameters, {} of weights (from {})", to,
                     sizes.num_tensors, grouped_number(sizes.parameters),
                     bytes_text(sizes.bytes_after), bytes_text(sizes.bytes_before));
}

}  // namespace

int run_convert(const Settings& settings, Session& session) {
  if (settings.load.model.empty())
    throw UsageError("nothing to read: give --model FILE, a GGUF file");
  if (settings.output.empty()) throw UsageError("nowhere to write: give --output DIR");
  GgufConversion conversion{.to = settings.output};
  if (settings.load.dtype != "auto") conversion.dtype = parse_dtype(settings.load.dtype);
  session.explain_written(settings.output, " is complete");
  ByteProgress progress(session, "");
  conversion.progress = progress.callback();
  const ConvertedSizes sizes = convert_gguf(ModelSource(model_path(settings)), conversion);
  session.print_note(sizes_text(sizes, settings.output));
  return 0;
}

}  // namespace paceline
