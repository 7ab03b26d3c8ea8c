#include "cli/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/json_cursor.h"
#include "base/line_reader.h"
#include "engine/trace_lines.h"

namespace paceline {
namespace {

std::vector<TokenId> ids_of(const JsonCursor& array) {
  std::vector<TokenId> ids;
  ids.reserve(array.num_items());
  for (const Json& id : array.array()) {
    const auto value = id.integer();
    if (!value || !kAnyTokenId.contains(*value)) array.below(ids.size(), id).integer(kAnyTokenId);
    ids.push_back(static_cast<TokenId>(*value));
  }
  return ids;
}

// Reads the values of one array such as [7,32,88], which has as many as `T` has parts.
class TraceParts {
 public:
  template <class T>
  static void read(const JsonCursor& array, T& parts) {
    size_t expected = 0;
    auto count = [&](const auto&...) { ++expected; };
    visit_parts(parts, count);
    TraceParts visit(array.items());
    if (visit.values_.size() != expected) {
      array.fail(found_instead(fmt::format("an array of {} values", visit.values_.size()),
                               std::to_string(expected)));
    }
    visit_parts(parts, visit);
  }

  template <class T>
  void operator()(T& value, const NumberRange& range) {
    value = static_cast<T>(next().integer(range));
  }
  void operator()(float& value) { value = static_cast<float>(next().number()); }
  void operator()(FinishReason& reason) {
    const JsonCursor& value = next();
    const auto* const found = std::ranges::find(kFinishReasons, value.string());
    if (found == std::end(kFinishReasons)) value.mismatch("stop, length, cancelled or error");
    reason = static_cast<FinishReason>(found - kFinishReasons);
  }

 private:
  explicit TraceParts(std::vector<JsonCursor> values) : values_(std::move(values)) {}
  const JsonCursor& next() { return values_.at(next_++); }

  std::vector<JsonCursor> values_;
  size_t next_ = 0;
};

// Whatever isn't as the lists say is an error of the cursor: "WHERE: FIELD: ...".
class TraceFields {
 public:
  // Of a line, or of an object in it.
  explicit TraceFields(JsonCursor object) : object_(std::move(object)) {}

  const std::string& text(std::string_view name) { return take(name).string(); }

  void operator()(std::string_view name, std::string& value) { value = text(name); }
  void operator()(std::string_view name, bool& value) { value = take(name).boolean(); }
  void operator()(std::string_view name, uint64_t& value) { value = take(name).unsigned_integer(); }
  void operator()(std::string_view name, int64_t& value, const NumberRange& range) {
    value = take(name).integer(range);
  }
  void operator()(std::string_view name, std::vector<int64_t>& values, const NumberRange& range) {
    for (const JsonCursor& value : take(name).items()) values.push_back(value.integer(range));
  }
  void operator()(std::string_view name, std::vector<TokenId>& ids) { ids = ids_of(take(name)); }
  void operator()(std::string_view name, std::vector<std::vector<TokenId>>& lists) {
    for (const JsonCursor& list : take(name).items()) lists.push_back(ids_of(list));
  }
  void operator()(std::string_view name, std::vector<std::string>& texts) {
    for (const JsonCursor& value : take(name).items()) texts.push_back(value.string());
  }
  template <class T>
  void operator()(std::string_view name, std::vector<T>& all) {
    for (const JsonCursor& value : take(name).items()) TraceParts::read(value, all.emplace_back());
  }
  template <class T, class... Range>
  void optional(std::string_view name, T& value, const std::type_identity_t<T>&,
                const Range&... range) {
    if (object_.contains(name)) (*this)(name, value, range...);
  }
  template <class T>
  void objects(std::string_view name, std::vector<T>& all) {
    for (const JsonCursor& value : take(name).items()) {
      TraceFields fields(value);
      visit_fields(all.emplace_back(), fields);
      fields.expect_no_more();
    }
  }
  // Traces of older versions lack the numbers that came later.
  void number(const SamplingNumber& number, int32_t& value) {
    if (!object_.contains(number.name)) return;
    value = static_cast<int32_t>(take(number.name).integer(number.range));
  }
  void number(const SamplingNumber& number, float& value) {
    if (!object_.contains(number.name)) return;
    value = static_cast<float>(take(number.name).number());
  }

  // Call it last: Error invalid for a field that wasn't read.
  void expect_no_more() const { object_.expect_keys(taken_); }

  // "WHERE: NAME".
  std::string place(std::string_view name) const { return object_.name_of(name); }

 private:
  JsonCursor take(std::string_view name) {
    taken_.push_back(name);
    return object_.at(name);
  }

  JsonCursor object_;
  std::vector<std::string_view> taken_;
};

template <class Line>
Line read_line(TraceFields& fields) {
  Line line;
  visit_fields(line, fields);
  return line;
}

// Adds line after line and checks each against those above it.
class TraceBuilder {
 public:
  void add(TraceFields& fields) {
    const std::string& type = fields.text("type");
    if (has_start_ == (type == "start")) {
      throw error_of(ErrorCode::corrupt, "{}: found \"{}\", expected {}", fields.place("type"),
                     type, has_start_ ? "no second start" : "\"start\" on the first line");
    }
    if (type == "start") {
      trace_.start = read_line<TraceStart>(fields);
      has_start_ = true;
    } else if (type == "request") {
      add_request(fields);
    } else if (type == "step") {
      add_step(fields);
    } else if (type == "cancel") {
      trace_.cancels.push_back(read_line<TraceCancel>(fields));
      expect_known(fields, "id", trace_.cancels.back().id);
    } else {
      throw error_of(ErrorCode::invalid,
                     "{}: found \"{}\", expected start, request, step or cancel",
                     fields.place("type"), type);
    }
    fields.expect_no_more();
  }

  bool has_start() const { return has_start_; }
  Trace take() { return std::move(trace_); }

 private:
  void add_request(TraceFields& fields) {
    TraceRequest request = read_line<TraceRequest>(fields);
    if (!ids_.insert(request.id).second) refuse(fields, "id", request.id, "one of its own");
    const auto num_ids = static_cast<int64_t>(request.prompt_ids.size());
    if (request.prompt_tokens != num_ids) {
      refuse(fields, "prompt_tokens", request.prompt_tokens,
             fmt::format("{}, the length of prompt_ids", num_ids));
    }
    trace_.requests.push_back(std::move(request));
  }

  void add_step(TraceFields& fields) {
    StepRecord step = read_line<StepRecord>(fields);
    if (!trace_.steps.empty()) {
      const StepRecord& last = trace_.steps.back();
      if (step.step <= last.step) {
        refuse(fields, "step", step.step, fmt::format("more than {}, the last", last.step));
      }
      if (step.at_us < last.at_us) {
        refuse(fields, "at_us", step.at_us, fmt::format("at least {}, the last", last.at_us));
      }
    }
    check_groups(fields, step);
    for (const StepRecord::Admission& one : step.admitted) expect_known(fields, "admitted", one.id);
    for (int64_t id : step.preempted) expect_known(fields, "preempted", id);
    for (const StepRecord::Slice& slice : step.slices) expect_known(fields, "slices", slice.id);
    for (const StepRecord::Draft& draft : step.drafts) {
      expect_known(fields, "drafts", draft.id);
      if (draft.accepted > draft.drafted) {
        refuse(fields, "drafts", draft.accepted, fmt::format("at most {}", draft.drafted),
               " accepted tokens");
      }
    }
    for (const StepRecord::Blocks& one : step.blocks) expect_known(fields, "blocks", one.id);
    for (const StepRecord::DrawnToken& token : step.tokens)
      expect_known(fields, "tokens", token.id);
    for (const StepRecord::IdAndReason& one : step.finished)
      expect_known(fields, "finished", one.id);
    trace_.steps.push_back(std::move(step));
  }

  void check_groups(const TraceFields& fields, const StepRecord& step) const {
    const std::vector<TraceGroup>& groups = trace_.start.groups;
    const auto check_size = [&](std::string_view name, size_t size) {
      if (size == groups.size()) return;
      refuse(fields, name, static_cast<int64_t>(size), fmt::format("{}", groups.size()),
             " numbers, one for each group");
    };
    check_size("free_blocks", step.free_blocks.size());
    check_size("cached_blocks", step.cached_blocks.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      if (step.free_blocks[i] > groups[i].blocks) {
        refuse(fields, "free_blocks", step.free_blocks[i],
               fmt::format("at most {}", groups[i].blocks));
      }
      if (step.cached_blocks[i] > step.free_blocks[i]) {
        refuse(fields, "cached_blocks", step.cached_blocks[i],
               fmt::format("at most {}", step.free_blocks[i]), ", those that are free");
      }
    }
  }

  void expect_known(const TraceFields& fields, std::string_view name, int64_t id) const {
    if (!ids_.contains(id)) refuse(fields, name, id, "the id of a request above");
  }

  [[noreturn]] static void refuse(const TraceFields& fields, std::string_view name, int64_t found,
                                  std::string_view expected, std::string_view unit = "") {
    throw error_of(ErrorCode::corrupt, "{}: found {}, expected {}{}", fields.place(name), found,
                   expected, unit);
  }

  Trace trace_;
  bool has_start_ = false;
  std::unordered_set<int64_t> ids_;
};

}  // namespace

Trace read_trace(const std::string& path) {
  const std::string name = path == "-" ? "standard input" : path;
  LineReader lines(path);
  TraceBuilder builder;
  while (const auto line = lines.next()) {
    const std::string where = fmt::format("{}, line {}", name, line->number);
    if (line->is_too_long) {
      throw error_of(ErrorCode::exhausted, "{}: longer than {} bytes, the most a line may have",
                     where, kMaxLineBytes);
    }
    const Json object = parse_json_line(line->text, where);
    TraceFields fields(JsonCursor(object, where));
    builder.add(fields);
  }
  if (!builder.has_start()) {
    throw error_of(ErrorCode::corrupt, "{}: empty, expected the lines of a trace", name);
  }
  return builder.take();
}

}  // namespace paceline
