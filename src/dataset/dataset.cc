#include "dataset/dataset.h"

#include <fmt/format.h>

#include "base/error.h"
#include "chat/strftime.h"
#include "dataset/data_file_kind.h"
#include "dataset/json_examples.h"
#include "dataset/plain_text.h"

namespace paceline {
namespace {

std::string machine_time() {
  const CivilTime now = local_time_now();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", now.year, now.month, now.day, now.hour,
                     now.minute, now.second);
}

}  // namespace

Dataset read_dataset(const std::filesystem::path& file, const DatasetModel& model,
                     const DatasetOptions& options) {
  if (options.max_seq_length < 2) {
    throw Error(ErrorCode::invalid,
                fmt::format("the maximal length of an example: found {}, expected at least 2 "
                            "tokens, of which the first isn't predicted",
                            options.max_seq_length));
  }
  DatasetOptions fixed = options;
  if (!fixed.now) fixed.now = machine_time();
  return data_file_kind(file) == DataFileKind::json
             ? read_json_examples(file.string(), model, fixed)
             : read_plain_text(file.string(), model, fixed);
}

}  // namespace paceline
