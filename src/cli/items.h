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

struct JsonLine {
  int64_t number = 0;
  Json object;
};

struct Item {
  std::string name;  // for messages: "prompt 2", "line 7"
  std::variant<Prompt, JsonLine> input;
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

// Likewise with many items at once: `begin` submits an item to the pool under the given tag, and
// `write` writes its answer, in the order of the items.
struct PooledWork {
  std::function<void(const Item& item, int64_t tag, RequestPool& pool)> begin;
  std::function<void(int64_t tag, RequestPool::Done&& done)> write;
};
int for_each_item_pooled(ItemSource& items, const Settings& settings, Session& session, LLM& llm,
                         const PooledWork& work);

// Writes an item's failure as its answer: a line of JSON, or a sentence on standard error.
void write_item_error(const Error& error, const std::string& name, const Settings& settings,
                      Session& session);

// Writes one line of JSON to standard output, at once.
void write_json_line(Session& session, std::string json);

}  // namespace paceline
