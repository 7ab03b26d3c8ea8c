#include "dataset/json_lines.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/line_reader.h"
#include "dataset/dataset_builder.h"
#include "dataset/fault_list.h"
#include "dataset/line_format.h"
#include "dataset/text_encoding.h"

namespace paceline {
namespace {

class JsonLinesReader {
 public:
  JsonLinesReader(const std::string& file, const DatasetModel& model, const DatasetOptions& options)
      : file_(file), model_(model), options_(options), chats_(model, options) {}

  void add(const Line& line) {
    const std::string where = fmt::format("{}:{}", file_, line.number);
    if (line.is_too_long) {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: the line has more than {} bytes, the most that a line may have",
                              where, kMaxLineBytes));
    }
    check_text_encoding(line.text, where);
    const Json json = parse_json_line(line.text, where);
    const JsonCursor cursor(json, where);
    cursor.object();
    choose_format(cursor);
    const ExampleText text = format_->read(cursor, chats_);
    builder_->add(encode_example(text, model_), where);
  }

  Dataset finish() {
    if (!builder_) builder_.emplace(file_, "", options_);
    return builder_->finish();
  }

 private:
  // The first line decides; the others must have the same keys.
  void choose_format(const JsonCursor& line) {
    if (format_ == nullptr) {
      format_ = find_line_format(line);
      if (format_ == nullptr) line.fail(found_instead(keys_of(line), expected_keys()));
      builder_.emplace(file_, format_->name, options_);
    }
    if (!format_->has_keys(line)) {
      line.fail(
          found_instead(keys_of(line), fmt::format("{}, as in the lines before", format_->keys)));
    }
  }

  static std::string expected_keys() {
    return fmt::format("{}, or {}, or {}", kChatLines.keys, kCompletionLines.keys, kTextLines.keys);
  }

  static std::string keys_of(const JsonCursor& line) {
    std::string keys;
    for (const auto& member : line.members()) {
      keys += fmt::format("{}{}", keys.empty() ? "the keys " : ", ", shown_text(member.key));
      if (keys.size() > 200) return keys + ", ...";
    }
    return keys.empty() ? "no key" : keys;
  }

  const std::string& file_;
  const DatasetModel& model_;
  const DatasetOptions& options_;
  const ChatExamples chats_;
  const LineFormat* format_ = nullptr;
  std::optional<DatasetBuilder> builder_;
};

// The list of all examples that other tools read from one document.
[[noreturn]] void refuse_array(const std::string& file) {
  throw Error(ErrorCode::invalid,
              fmt::format("{}: found a JSON array, expected one object a line; `jq -c '.[]' {}` "
                          "prints it so",
                          file, file));
}

bool begins_array(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin != line.npos && line[begin] == '[';
}

// These concern the one line; another Error ends the reading.
bool is_fault_of_line(const Error& error) {
  return error.code() == ErrorCode::invalid || error.code() == ErrorCode::corrupt;
}

}  // namespace

Dataset read_json_lines(const std::string& file, const DatasetModel& model,
                        const DatasetOptions& options) {
  LineReader lines(file);
  JsonLinesReader reader(file, model, options);
  FaultList faults(file);
  bool is_first = true;
  while (std::optional<Line> line = lines.next()) {
    if (line->number == 1) skip_byte_order_mark(line->text);
    if (line->is_blank()) continue;
    if (std::exchange(is_first, false) && begins_array(line->text)) refuse_array(file);
    try {
      reader.add(*line);
    } catch (const Error& error) {
      if (!is_fault_of_line(error)) throw;
      faults.add(error.what());
      if (faults.is_full()) break;
    }
  }
  faults.throw_if_any();
  return reader.finish();
}

}  // namespace paceline
