#include "cli/items.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "cli/text_file.h"
#include "cli/usage_error.h"

namespace paceline {

void write_item_error(const Error& error, const std::string& name, const Settings& settings,
                      Session& session) {
  if (!settings.jsonl) {
    if (session.interrupted() && error.code() == ErrorCode::cancelled) return;
    session.print_error(name.empty() ? error.what() : fmt::format("{}: {}", name, error.what()));
    return;
  }
  write_json_line(session, object_json([&](JsonWriter& writer) {
                    writer.key("error").begin_object().member("code",
                                                              error_code_name(error.code()));
                    writer.member("message", std::string_view(error.what())).end_object();
                  }));
}

namespace {

Item parse_line(const Line& line) {
  const std::string name = fmt::format("line {}", line.number);
  if (line.is_too_long) {
    throw error_of(ErrorCode::invalid, "{}: longer than {} bytes, the most a line may have", name,
                   kMaxLineBytes);
  }
  Json object = parse_json_line(line.text, name);
  JsonCursor(object, name).object();
  return {name, std::move(object)};
}

}  // namespace

ItemSource::ItemSource(const Settings& settings) {
  for (const std::string& prompt : settings.prompts) known_.push_back({"", Prompt(prompt)});
  for (const auto& ids : settings.id_prompts) known_.push_back({"", Prompt(ids)});
  if (!known_.empty() && settings.file) {
    throw UsageError("--file and a prompt were both given, expected one of them");
  }
  if (known_.empty()) {
    if (!settings.file && isatty(STDIN_FILENO) == 1) {
      throw UsageError("no input: give --prompt or --file, or pipe text in");
    }
    const std::string path = settings.file.value_or("-");
    if (settings.jsonl) {
      lines_ = std::make_unique<LineReader>(path);
    } else {
      known_.push_back({"", Prompt(without_final_newline(read_whole_text(path)))});
    }
  }
  for (size_t i = 0; known_.size() > 1 && i < known_.size(); ++i) {
    known_[i].name = fmt::format("prompt {}", i + 1);
  }
}

bool ItemSource::has_next() {
  if (next_known_ < known_.size()) return true;
  if (lines_ == nullptr) return false;
  // Skips empty lines.
  while (!pending_ || (pending_->is_blank() && !pending_->is_too_long)) {
    pending_ = lines_->next();
    if (!pending_) return false;
  }
  return true;
}

bool ItemSource::is_ready() {
  return next_known_ < known_.size() || lines_ == nullptr || pending_ || lines_->is_ready();
}

Item ItemSource::next() {
  if (next_known_ < known_.size()) return known_[next_known_++];
  const Line line = std::move(*pending_);
  pending_.reset();
  return parse_line(line);
}

int64_t ItemSource::estimated_total(int64_t num_read) const {
  if (lines_ == nullptr) return static_cast<int64_t>(known_.size());
  const double share = lines_->share_read();
  return share > 0 ? static_cast<int64_t>(static_cast<double>(num_read) / share) : 0;
}

void write_json_line(Session& session, std::string json) {
  json.push_back('\n');
  session.out().print(json);
}

}  // namespace paceline
