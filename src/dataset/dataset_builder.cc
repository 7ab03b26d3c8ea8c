#include "dataset/dataset_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace paceline {

DatasetBuilder::DatasetBuilder(const std::string& file, std::string_view format,
                               const DatasetOptions& options)
    : options_(options) {
  dataset_.report = {.file = file,
                     .format = std::string(format),
                     .now = options.now.value(),
                     .max_seq_length = options.max_seq_length};
}

void DatasetBuilder::add(EncodedExample encoded, std::string_view where) {
  Example& example = encoded.example;
  DatasetReport& report = dataset_.report;
  if (example.num_counted() == 0) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: found no token to learn among {}, expected at least one behind "
                            "the first token and the masked prompt",
                            where, example.num_tokens()));
  }
  report.longest = std::max(report.longest, example.num_tokens());
  const auto max_length = static_cast<size_t>(options_.max_seq_length);
  const bool is_cut = example.tokens.size() > max_length;
  if (is_cut) {
    example.tokens.resize(max_length);
    example.counts.resize(max_length);
    if (example.num_counted() == 0) {
      ++report.num_dropped;
      return;
    }
  }
  if (report.num_examples == options_.max_examples ||
      example.num_tokens() > options_.max_tokens - report.num_tokens) {
    throw Error(ErrorCode::exhausted,
                fmt::format("{}: more than {} examples or {} tokens, which are kept in memory; "
                            "split the file, or raise the limit",
                            where, options_.max_examples, options_.max_tokens));
  }
  example.tokens.shrink_to_fit();
  example.counts.shrink_to_fit();
  report.num_truncated += is_cut ? 1 : 0;
  report.num_straddling += encoded.num_straddling;
  report.num_other_prompts += encoded.num_other_prompts;
  report.num_silent_thoughts += encoded.num_silent_thoughts;
  report.num_tokens += example.num_tokens();
  report.num_counted += example.num_counted();
  report.memory_bytes +=
      static_cast<int64_t>(example.tokens.capacity() * sizeof(int32_t) + example.counts.capacity());
  ++report.num_examples;
  dataset_.examples.push_back(std::move(example));
}

Dataset DatasetBuilder::finish() {
  DatasetReport& report = dataset_.report;
  if (dataset_.examples.empty()) {
    throw Error(
        ErrorCode::invalid,
        report.num_dropped == 0
            ? fmt::format("{}: found no example, expected at least one line", report.file)
            : fmt::format("{}: nothing to learn is left of all {} examples when they are "
                          "cut to {} tokens (the longest has {}); raise the maximal length",
                          report.file, report.num_dropped, report.max_seq_length, report.longest));
  }
  report.memory_bytes += static_cast<int64_t>(dataset_.examples.capacity() * sizeof(Example));
  return std::move(dataset_);
}

std::vector<std::string> dataset_warnings(const DatasetReport& report) {
  std::vector<std::string> warnings;
  if (report.num_truncated > 0) {
    warnings.push_back(fmt::format(
        "{}: {} of {} examples are longer than {} tokens and were cut; the longest has {}",
        report.file, report.num_truncated, report.num_examples + report.num_dropped,
        report.max_seq_length, report.longest));
  }
  if (report.num_dropped > 0) {
    warnings.push_back(fmt::format(
        "{}: {} of {} examples were dropped: cut to {} tokens they have nothing to learn",
        report.file, report.num_dropped, report.num_examples + report.num_dropped,
        report.max_seq_length));
  }
  if (report.num_straddling > 0) {
    warnings.push_back(fmt::format(
        "{}: {} tokens have bytes of a masked prompt and of its completion and aren't learnt",
        report.file, report.num_straddling));
  }
  if (report.num_other_prompts > 0) {
    warnings.push_back(fmt::format(
        "{}: {} turns follow a prompt that ends otherwise than the server's: the chat template's "
        "generation prompt opens or skips thoughts that these turns haven't; variables of the "
        "template may change it (as enable_thinking), or write the thoughts into the data",
        report.file, report.num_other_prompts));
  }
  if (report.num_silent_thoughts > 0) {
    warnings.push_back(fmt::format(
        "{}: the chat template leaves out the reasoning of {} turns, which isn't learnt "
        "(many templates write that of the last turn only)",
        report.file, report.num_silent_thoughts));
  }
  return warnings;
}

}  // namespace paceline
