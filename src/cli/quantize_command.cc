#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/gguf_output.h"
#include "cli/model_opening.h"
#include "cli/perplexity.h"
#include "cli/progress.h"
#include "cli/text_file.h"
#include "cli/usage_error.h"
#include "load/calibration.h"
#include "load/quantize_model.h"

namespace paceline {
namespace {

struct Report {
  std::string path;
  QuantizedSizes sizes;
  std::optional<Perplexity> before, after;
};

// The perplexity of the model in `directory`, in windows of `context` tokens; a `context` of 0 is
// set to the longest one.
Perplexity perplexity_of(const std::string& directory, const MeasuredText& text,
                         const Tokenizer& tokenizer, int64_t& context, const Settings& settings,
                         Session& session) {
  Settings of_model = settings;
  of_model.load.model = directory;
  if (context > 0) of_model.load.max_model_len = context;
  LLM llm = open_model(of_model, session, 1);
  context = llm.model_info().max_model_len;
  const Perplexity measured =
      measure_perplexity(text, tokenizer, context, scorer_of(llm, session), session);
  // Perplexities of different parts of a text can't be compared.
  if (measured.is_partial()) throw Error(ErrorCode::cancelled, "interrupted");
  return measured;
}

void calibrate(const Settings& settings, const std::filesystem::path& model, ThreadPool& threads,
               Session& session, std::optional<Calibration>& calibration) {
  ProgressBar progress(session.shows_progress(), "tok", 0, "calibrating  ");
  const auto update = [&](uint64_t done, uint64_t all) {
    progress.update(static_cast<int64_t>(done), static_cast<int64_t>(all));
  };
  calibration.emplace(CalibrationOptions{.model = model,
                                         .text = read_whole_text(*settings.calibrate),
                                         .num_threads = settings.load.num_threads,
                                         .progress = update},
                      threads);
}

// With --output FILE.gguf.
QuantizedSizes quantize_into_gguf(const Settings& settings, Session& session) {
  if (settings.bits || settings.group_size || !settings.recipe.empty()) {
    throw UsageError(
        "--bits, --group-size and --recipe are for directories: a GGUF file's types "
        "are those of --gguf-type");
  }
  const std::filesystem::path from = model_path(settings);
  ThreadPool threads(settings.load.num_threads);
  std::optional<Calibration> calibration;
  if (settings.calibrate) calibrate(settings, from, threads, session, calibration);
  ByteProgress progress(session, "");
  GgufWriting writing = gguf_writing(settings, GgufFileType::q4_k_m, progress);
  if (calibration) writing.calibration = &*calibration;
  const ConvertedSizes sizes = write_gguf(ModelSource(from), writing, threads);
  return {.parameters = sizes.parameters,
          .quantized_parameters = sizes.quantized_parameters,
          .bytes_before = sizes.bytes_before,
          .bytes_after = sizes.bytes_after};
}

QuantizedSizes quantize_into(const Settings& settings, Session& session) {
  QuantizeOptions options{.from = model_path(settings), .to = settings.output};
  if (!std::filesystem::is_directory(options.from)) {
    throw error_of(ErrorCode::invalid,
                   "{}: a GGUF file, expected a directory (`paceline convert` makes one)",
                   options.from.string());
  }
  options.format = {.bits = static_cast<int>(settings.bits.value_or(4)),
                    .group_size = settings.group_size.value_or(AffineFormat().group_size)};
  options.recipe = settings.recipe;
  ThreadPool threads(settings.load.num_threads);
  std::optional<Calibration> calibration;
  if (settings.calibrate) {
    calibrate(settings, options.from, threads, session, calibration);
    options.calibration = &*calibration;
  }
  ByteProgress progress(session, "");
  options.progress = progress.callback();
  return quantize_model(options, threads);
}

std::string report_text(const Report& report) {
  const QuantizedSizes& sizes = report.sizes;
  std::string text = fmt::format(
      "{}: {} of {} parameters quantised, {} -> {}, {:.3f} bits per weight\n", report.path,
      grouped_number(sizes.quantized_parameters), grouped_number(sizes.parameters),
      bytes_text(sizes.bytes_before), bytes_text(sizes.bytes_after), sizes.bits_per_weight());
  if (!report.before) return text;
  text += fmt::format("before: {}\nafter:  {}\n", perplexity_text(*report.before),
                      perplexity_text(*report.after));
  const double change = report.after->value() / report.before->value() - 1;
  return text + fmt::format("change: {:+.2f} % perplexity\n", 100 * change);
}

std::string report_json(const Report& report) {
  const std::string text = object_json([&](JsonWriter& json) {
    json.member("path", report.path);
    json.member("parameters", report.sizes.parameters);
    json.member("quantized_parameters", report.sizes.quantized_parameters);
    json.member("bytes_before", report.sizes.bytes_before);
    json.member("bytes_after", report.sizes.bytes_after);
    json.member("bits_per_weight", report.sizes.bits_per_weight());
    if (report.before) {
      json.key("before").begin_object();
      write_perplexity(*report.before, json);
      json.end_object().key("after").begin_object();
      write_perplexity(*report.after, json);
      json.end_object();
    }
  });
  return text + "\n";
}

}  // namespace

int run_quantize(const Settings& settings, Session& session) {
  if (settings.output.empty())
    throw UsageError("nowhere to write: give --output DIR, or FILE.gguf");
  if (settings.bits && !settings.recipe.empty()) {
    throw UsageError("--bits and --recipe both set the bits: give one of them");
  }
  session.explain_written(settings.output, " is complete, --check is not");
  Report report{.path = settings.output};
  // Read first, so that a wrong name fails before the work begins.
  std::optional<Tokenizer> tokenizer;
  std::optional<MeasuredText> text;
  if (settings.check) {
    tokenizer = open_tokenizer(settings);
    text = read_measured_text(*settings.check, {}, *tokenizer);
  }
  report.sizes = writes_gguf(settings) ? quantize_into_gguf(settings, session)
                                       : quantize_into(settings, session);
  if (text) {
    int64_t context = settings.load.max_model_len.value_or(0);
    const std::string before = model_path(settings).string();
    report.before = perplexity_of(before, *text, *tokenizer, context, settings, session);
    report.after = perplexity_of(settings.output, *text, *tokenizer, context, settings, session);
  }
  session.out().write(settings.json ? report_json(report) : report_text(report));
  return 0;
}

}  // namespace paceline
