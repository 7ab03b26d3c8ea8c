// Loops over a command's items: one at a time, or many at once with answers in order.
#include <map>
#include <optional>
#include <utility>

#include "cli/items.h"
#include "cli/model_opening.h"
#include "cli/progress.h"
#include "paceline/error.h"

namespace paceline {
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
