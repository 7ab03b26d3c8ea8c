#include "dataset/json_examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/line_reader.h"
#include "base/mapped_file.h"
#include "dataset/dataset_builder.h"
#include "dataset/fault_list.h"
#include "dataset/json_array.h"
#include "dataset/line_format.h"
#include "dataset/text_encoding.h"

namespace paceline {
namespace {

class ExampleReader {
 public:
  ExampleReader(const std::string& file, const DatasetModel& model, const DatasetOptions& options)
      : file_(file), model_(model), options_(options), chats_(model, options) {}

  // The JSON of one example, from `where`.
  void add(std::string_view text, const std::string& where) {
    check_text_encoding(text, where);
    const Json json = parse_json_line(text, where);
    const JsonCursor cursor(json, where);
    cursor.object();
    refuse_judged_answers(cursor);
    choose_format(cursor);
    builder_->add(encode_example(format_->read(cursor, chats_), model_), where);
  }

  Dataset finish() {
    if (!builder_) builder_.emplace(file_, "", options_);
    return builder_->finish();
  }

 private:
  // The first example decides; the others must have the same keys.
  void choose_format(const JsonCursor& line) {
    if (format_ == nullptr) {
      format_ = find_line_format(line);
      if (format_ == nullptr) line.fail(found_instead(keys_of(line), known_line_keys()));
      builder_.emplace(file_, format_->name, options_);
    }
    if (!format_->has_keys(line)) {
      line.fail(
          found_instead(keys_of(line), fmt::format("{}, as in the lines before", format_->keys)));
    }
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

[[noreturn]] void refuse_long(std::string_view what, const std::string& where) {
  throw Error(ErrorCode::invalid, fmt::format("{}: the {} has more than {} bytes, the most that a "
                                              "{} may have",
                                              where, what, kMaxLineBytes, what));
}

// These concern the one example; another Error ends the reading.
bool is_fault_of_example(const Error& error) {
  return error.code() == ErrorCode::invalid || error.code() == ErrorCode::corrupt;
}

// Calls `add`; false when the reading should end because of its faults.
template <class Add>
bool note_faults(FaultList& faults, const Add& add) {
  try {
    add();
  } catch (const Error& error) {
    if (!is_fault_of_example(error)) throw;
    faults.add(error.what());
  }
  return !faults.is_full();
}

Dataset read_array(const std::string& file, const DatasetModel& model,
                   const DatasetOptions& options) {
  const MappedFile mapped(file);
  const std::span<const std::byte> bytes = mapped.bytes();
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  JsonArrayItems items(text, file);
  ExampleReader reader(file, model, options);
  FaultList faults(file, "examples");
  const auto add = [&](std::string_view item) {
    const std::string where = fmt::format("{}[{}]", file, items.index());
    if (item.size() > kMaxLineBytes) refuse_long("item", where);
    reader.add(item, where);
  };
  while (const std::optional<std::string_view> item = items.next()) {
    if (!note_faults(faults, [&] { add(*item); })) break;
  }
  faults.throw_if_any();
  return reader.finish();
}

// Programs that indent write an object so: its first line ends with { or after a member.
bool goes_on(std::string_view line) {
  const size_t begin = line.find_first_not_of(kJsonBlanks),
               last = line.find_last_not_of(kJsonBlanks);
  return begin != line.npos && line[begin] == '{' &&
         std::string_view("{[,").find(line[last]) != std::string_view::npos;
}

void check_first_line(const Line& line, const std::string& file) {
  if (line.is_too_long || !goes_on(line.text)) return;
  throw Error(ErrorCode::invalid,
              fmt::format("{}: found a JSON object over several lines, expected one object a line, "
                          "or one array of them; `jq -c . {}` prints one a line",
                          file, file));
}

bool begins_array(std::string_view line) {
  const size_t begin = line.find_first_not_of(kJsonBlanks);
  return begin != line.npos && line[begin] == '[';
}

}  // namespace

Dataset read_json_examples(const std::string& file, const DatasetModel& model,
                           const DatasetOptions& options) {
  LineReader lines(file);
  ExampleReader reader(file, model, options);
  FaultList faults(file, "lines");
  bool is_first = true;
  while (std::optional<Line> line = lines.next()) {
    if (line->number == 1) skip_byte_order_mark(line->text);
    if (line->is_blank()) continue;
    if (std::exchange(is_first, false)) {
      if (begins_array(line->text)) return read_array(file, model, options);
      check_first_line(*line, file);
    }
    const std::string where = fmt::format("{}:{}", file, line->number);
    const bool is_next_read = note_faults(faults, [&] {
      if (line->is_too_long) refuse_long("line", where);
      reader.add(line->text, where);
    });
    if (!is_next_read) break;
  }
  faults.throw_if_any();
  return reader.finish();
}

bool begins_with_example(std::string_view text) {
  size_t begin = std::min(text.find_first_not_of(kJsonBlanks), text.size());
  if (begin < text.size() && text[begin] == '[') {
    begin = std::min(text.find_first_not_of(kJsonBlanks, begin + 1), text.size());
  }
  if (begin == text.size() || text[begin] != '{') return false;
  const std::string_view value = text.substr(begin, json_value_end(text, begin) - begin);
  if (value.size() > kMaxLineBytes) return false;
  try {
    const Json json = parse_json(value, "");
    return find_line_format(JsonCursor(json, "")) != nullptr;
  } catch (const Error&) {
    return false;  // it only looks like JSON
  }
}

}  // namespace paceline
