#include "cli/items.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "cli/model_opening.h"
#include "cli/progress.h"
#include "cli/text_file.h"
#include "cli/usage_error.h"

namespace paceline {

void write_item_error(const Error& error, const std::string& name, const Settings& settings,
                      Session& session) {
  if (!settings.jsonl) {
    if (session.interrupted() && error.code() == ErrorCode::cancelled) return;
    session.print_error(error.code(),
                        name.empty() ? error.what() : fmt::format("{}: {}", name, error.what()));
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

namespace {

// No progress bar if the answers appear on the same terminal.
bool wants_progress(const Settings& settings, Session& session) {
  return session.shows_progress() && !session.stdout_is_terminal() && settings.jsonl &&
         !settings.verbose;
}

// In-flight items, and answers that wait for earlier ones.
class OrderedResults {
 public:
  OrderedResults(const Settings& settings, Session& session, const PooledWork& work)
      : settings_(settings), session_(session), work_(work) {}

  int64_t add(std::string name) {
    pending_.emplace(next_tag_, Pending{.name = std::move(name)});
    return next_tag_++;
  }
  void fail(int64_t tag, const Error& error) {
    pending_.at(tag).done = {.tag = tag,
                             .result = ErrorInfo{.code = error.code(), .message = error.what()}};
    flush();
  }
  void finish(RequestPool::Done&& done) {
    const int64_t tag = done.tag;
    pending_.at(tag).done = std::move(done);
    flush();
  }
  int64_t num_read() const { return next_tag_; }
  int64_t num_written() const { return num_written_; }
  bool all_succeeded() const { return all_succeeded_; }
  // Includes results that wait for earlier ones, as they take memory too.
  size_t size() const { return pending_.size(); }

 private:
  struct Pending {
    std::string name;
    std::optional<RequestPool::Done> done;
  };

  void flush() {
    while (!pending_.empty() && pending_.begin()->second.done) {
      auto node = pending_.extract(pending_.begin());
      write(node.key(), node.mapped().name, *node.mapped().done);
      ++num_written_;
    }
  }
  void write(int64_t tag, const std::string& name, const RequestPool::Done& done) {
    try {
      if (const auto* error = std::get_if<ErrorInfo>(&done.result)) {
        throw Error(error->code, error->message);
      }
      const PooledAnswer answer = work_.answer(tag, done);
      const bool is_parted = answer.is_table && std::exchange(has_table_, true);
      session_.out().print(is_parted ? "\n" + answer.text : answer.text);
      if (settings_.verbose) print_metrics(done.metrics, session_, answer.ending_text);
    } catch (const Error& error) {
      all_succeeded_ = false;
      write_item_error(error, name, settings_, session_);
    }
  }

  const Settings& settings_;
  Session& session_;
  const PooledWork& work_;
  std::map<int64_t, Pending> pending_;
  int64_t next_tag_ = 0;
  int64_t num_written_ = 0;
  bool all_succeeded_ = true;
  bool has_table_ = false;
};

// Returns whether all succeeded.
bool answer_all(ItemSource& items, const Settings& settings, Session& session, LLM& llm,
                const PooledWork& work) {
  // Keeps the batch full while the next lines are read.
  const auto most = static_cast<size_t>(2 * settings.load.max_num_seqs);
  RequestPool pool(llm);
  OrderedResults answers(settings, session, work);
  ProgressBar progress(wants_progress(settings, session), "items", 0);
  const Interrupt::Graceful graceful(session.interrupt());
  const auto take_one = [&] {
    auto done = pool.next();
    if (done) answers.finish(std::move(*done));
    progress.update(answers.num_written(), items.estimated_total(answers.num_read()));
    return done.has_value();
  };
  while (!session.interrupted()) {
    // A writer may wait for an answer before it writes the next item.
    while (!items.is_ready() && take_one()) {
    }
    if (!items.has_next()) break;
    Item item;
    std::optional<int64_t> tag;
    try {
      item = items.next();
      tag = answers.add(item.name);
      work.begin(item, *tag, pool);
    } catch (const Error& error) {
      answers.fail(tag ? *tag : answers.add(item.name), error);
    }
    while (answers.size() >= most && take_one()) {
    }
  }
  while (take_one()) {
  }
  return answers.all_succeeded();
}

}  // namespace

int for_each_item(ItemSource& items, const Settings& settings, Session& session,
                  const std::function<void(const Item& item)>& work) {
  bool all_done = true;
  int64_t num_done = 0;
  ProgressBar progress(wants_progress(settings, session), "items", 0);
  while (!session.interrupted() && items.has_next()) {
    Item item;
    try {
      item = items.next();
      const Interrupt::Graceful graceful(session.interrupt());
      work(item);
    } catch (const Error& error) {
      all_done = false;
      write_item_error(error, item.name, settings, session);
    }
    ++num_done;
    progress.update(num_done, items.estimated_total(num_done));
  }
  return session.exit_code(all_done ? 0 : 1);
}

int for_each_item_pooled(ItemSource& items, const Settings& settings, Session& session, LLM& llm,
                         const PooledWork& work) {
  const bool all_done = answer_all(items, settings, session, llm, work);
  llm.close();
  return session.exit_code(all_done ? 0 : 1);
}

}  // namespace paceline
