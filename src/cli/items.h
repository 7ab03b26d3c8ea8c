// The items that a command works on, and loops over them. An item's failure doesn't affect others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/json.h"
#include "base/line_reader.h"
#include "cli/session.h"
#include "cli/settings.h"
#include "llm/request_pool.h"

namespace paceline {

struct Item {
  std::string name;  // for messages: "prompt 2", "line 7"
  std::variant<Prompt, Json> input;

  // The object of a line of --jsonl; nullptr for a prompt.
  const Json* line() const { return std::get_if<Json>(&input); }
  const Prompt& prompt() const { return std::get<Prompt>(input); }
  const std::string& text() const { return std::get<std::string>(prompt()); }
};

// Items from --prompt and --prompt-ids, else from the text or lines of --file, else from standard
// input.
class ItemSource {
 public:
  // Throws UsageError when there is nothing to read, Error when the file can't be opened.
  explicit ItemSource(const Settings& settings);

  bool has_next();
  // Whether has_next() and next() would return without waiting for the writer of the pipe.
  bool is_ready();
  // Throws Error for this item alone: a line that is too long or isn't a JSON object.
  Item next();
  // Estimates the number of items after `num_read` were taken; 0: unknown.
  int64_t estimated_total(int64_t num_read) const;

 private:
  std::vector<Item> known_;
  size_t next_known_ = 0;
  std::unique_ptr<LineReader> lines_;
  std::optional<Line> pending_;
};

// Calls `work` for every item, to write its answer; an Error becomes the item's answer. Stops after
// an interruption. Returns the command's exit code.
int for_each_item(ItemSource& items, const Settings& settings, Session& session,
                  const std::function<void(const Item& item)>& work);

struct PooledAnswer {
  std::string text;              // whole lines
  bool is_table = false;         // an empty line stands between two tables
  std::string ending_text = "";  // behind the figures of --verbose
};

// Likewise with many items at once: `begin` submits an item to the pool under the given tag, and
// `answer` makes its answer, in the order of the items. Closes the model at the end.
struct PooledWork {
  std::function<void(const Item& item, int64_t tag, RequestPool& pool)> begin;
  std::function<PooledAnswer(int64_t tag, const RequestPool::Done& done)> answer;
};
int for_each_item_pooled(ItemSource& items, const Settings& settings, Session& session, LLM& llm,
                         const PooledWork& work);

// Writes an item's failure as its answer: a line of JSON, or a sentence on standard error.
void write_item_error(const Error& error, const std::string& name, const Settings& settings,
                      Session& session);

// Writes one line of JSON to standard output, at once.
void write_json_line(Session& session, std::string json);

}  // namespace paceline
