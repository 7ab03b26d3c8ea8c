#include "cli/trace_file.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_set>

#include "base/json.h"
#include "cli/line_reader.h"
#include "cli/trace_fields.h"
#include "paceline/error.h"

namespace paceline {
namespace {

TraceStart read_start(TraceFields& fields) {
  TraceStart start;
  start.model = fields.text("model");
  start.block_size = fields.integer("block_size", kPositive);
  fields.objects("groups", [&](TraceFields& group) {
    start.groups.push_back(
        {.window = group.integer("window", kCount), .blocks = group.integer("blocks", kPositive)});
  });
  start.max_num_seqs = fields.integer("max_num_seqs", kPositive);
  start.max_batched_tokens = fields.integer("max_batched_tokens", kPositive);
  return start;
}

// Traces of older versions lack the numbers that came later.
void read_numbers(TraceFields& fields, SamplingOptions& sampling) {
  for (const SamplingNumber& number : kSamplingNumbers) {
    if (!fields.has(number.name)) continue;
    if (const auto* whole = std::get_if<int32_t SamplingOptions::*>(&number.member)) {
      sampling.*(*whole) = static_cast<int32_t>(fields.integer(number.name, number.range));
    } else {
      sampling.*std::get<float SamplingOptions::*>(number.member) =
          static_cast<float>(fields.number(number.name));
    }
  }
}

void read_sampling(TraceFields& fields, SamplingOptions& sampling) {
  read_numbers(fields, sampling);
  fields.tuples("logit_bias", 2, [&](TraceTuple& bias) {
    const int32_t id = bias.token_id();
    sampling.logit_bias.emplace_back(id, static_cast<float>(bias.number()));
  });
  if (fields.has("never")) {
    for (const int32_t id : fields.token_ids("never")) {
      sampling.logit_bias.emplace_back(id, -std::numeric_limits<float>::infinity());
    }
  }
  if (fields.has("sampler_order") && fields.text("sampler_order") == "mlx") {
    sampling.order = SamplerOrder::mlx;
  }
  sampling.seed = fields.seed("seed");
}

// What a request has that most haven't.
void read_restrictions(TraceFields& fields, TraceRequest& request) {
  if (fields.has("allowed_token_ids")) {
    request.allowed_token_ids = fields.token_ids("allowed_token_ids");
  }
  if (fields.has("banned")) request.banned = fields.token_id_lists("banned");
  if (fields.has("min_tokens")) request.min_tokens = fields.integer("min_tokens", kCount);
  if (fields.has("skip_special_tokens")) {
    request.skip_special_tokens = fields.boolean("skip_special_tokens");
  }
}

TraceRequest read_request(TraceFields& fields) {
  TraceRequest request;
  request.id = fields.integer("id", kAnyInteger);
  request.step = fields.integer("step", kCount);
  request.prompt_ids = fields.token_ids("prompt_ids");
  request.prompt_tokens = fields.integer("prompt_tokens", kCount);
  request.max_tokens = fields.integer("max_tokens", kNotNegative);
  read_sampling(fields, request.sampling);
  request.stop_token_ids = fields.token_ids("stop_token_ids");
  request.stop = fields.texts("stop");
  request.eos_token_ids = fields.token_ids("eos_token_ids");
  request.ignore_eos = fields.boolean("ignore_eos");
  request.priority = fields.integer("priority", kAnyInteger);
  read_restrictions(fields, request);
  return request;
}

std::vector<TraceCount> read_counts(TraceFields& fields, std::string_view name) {
  std::vector<TraceCount> counts;
  fields.tuples(name, 2, [&](TraceTuple& t) {
    counts.push_back({.id = t.integer(kAnyInteger), .count = t.integer(kCount)});
  });
  return counts;
}

TraceStep read_step(TraceFields& fields) {
  TraceStep step;
  step.step = fields.integer("step", kCount);
  step.at_us = fields.integer("at_us", kClockTime);
  step.plan_us = fields.integer("plan_us", kCount);
  step.forward_us = fields.integer("forward_us", kCount);
  step.total_us = fields.integer("total_us", kCount);
  step.rows = fields.integer("rows", kCount);
  step.waiting = fields.integer("waiting", kCount);
  step.free = fields.integers("free", kCount);
  step.cached = fields.integers("cached", kCount);
  step.admitted = read_counts(fields, "admitted");
  step.preempted = fields.integers("preempted", kAnyInteger);
  fields.tuples("slices", 3, [&](TraceTuple& t) {
    step.slices.push_back(
        {.id = t.integer(kAnyInteger), .first = t.integer(kCount), .count = t.integer(kPositive)});
  });
  step.blocks = read_counts(fields, "blocks");
  fields.tuples("tokens", 2, [&](TraceTuple& t) {
    step.tokens.push_back({.id = t.integer(kAnyInteger), .token = t.token_id()});
  });
  fields.tuples("finished", 2, [&](TraceTuple& t) {
    step.finished.push_back({.id = t.integer(kAnyInteger), .reason = t.text()});
  });
  return step;
}

// Adds line after line and checks each against those above it.
class TraceBuilder {
 public:
  void add(TraceFields& fields) {
    const std::string& type = fields.text("type");
    if (has_start_ == (type == "start")) {
      throw Error(ErrorCode::corrupt,
                  fmt::format("{}: found \"{}\", expected {}", fields.place("type"), type,
                              has_start_ ? "no second start" : "\"start\" on the first line"));
    }
    if (type == "start") {
      trace_.start = read_start(fields);
      has_start_ = true;
    } else if (type == "request") {
      add_request(fields);
    } else if (type == "step") {
      add_step(fields);
    } else if (type == "cancel") {
      const int64_t id = fields.integer("id", kAnyInteger);
      trace_.cancels.push_back({.id = id, .step = fields.integer("step", kCount)});
      expect_known(fields, "id", id);
    } else {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: found \"{}\", expected start, request, step or cancel",
                              fields.place("type"), type));
    }
    fields.expect_no_more();
  }

  bool has_start() const { return has_start_; }
  Trace take() { return std::move(trace_); }

 private:
  void add_request(TraceFields& fields) {
    TraceRequest request = read_request(fields);
    if (!ids_.insert(request.id).second) refuse(fields, "id", request.id, "one of its own");
    const auto num_ids = static_cast<int64_t>(request.prompt_ids.size());
    if (request.prompt_tokens != num_ids) {
      refuse(fields, "prompt_tokens", request.prompt_tokens,
             fmt::format("{}, the length of prompt_ids", num_ids));
    }
    trace_.requests.push_back(std::move(request));
  }

  void add_step(TraceFields& fields) {
    TraceStep step = read_step(fields);
    if (!trace_.steps.empty()) {
      const TraceStep& last = trace_.steps.back();
      if (step.step <= last.step) {
        refuse(fields, "step", step.step, fmt::format("more than {}, the last", last.step));
      }
      if (step.at_us < last.at_us) {
        refuse(fields, "at_us", step.at_us, fmt::format("at least {}, the last", last.at_us));
      }
    }
    check_groups(fields, step);
    for (const TraceCount& one : step.admitted) expect_known(fields, "admitted", one.id);
    for (int64_t id : step.preempted) expect_known(fields, "preempted", id);
    for (const TraceSlice& slice : step.slices) expect_known(fields, "slices", slice.id);
    for (const TraceCount& one : step.blocks) expect_known(fields, "blocks", one.id);
    for (const TraceToken& token : step.tokens) expect_known(fields, "tokens", token.id);
    for (const TraceFinish& one : step.finished) expect_known(fields, "finished", one.id);
    trace_.steps.push_back(std::move(step));
  }

  void check_groups(const TraceFields& fields, const TraceStep& step) const {
    const std::vector<TraceGroup>& groups = trace_.start.groups;
    const auto check_size = [&](std::string_view name, size_t size) {
      if (size == groups.size()) return;
      refuse(fields, name, static_cast<int64_t>(size), fmt::format("{}", groups.size()),
             " numbers, one for each group");
    };
    check_size("free", step.free.size());
    check_size("cached", step.cached.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      if (step.free[i] > groups[i].blocks) {
        refuse(fields, "free", step.free[i], fmt::format("at most {}", groups[i].blocks));
      }
      if (step.cached[i] > step.free[i]) {
        refuse(fields, "cached", step.cached[i], fmt::format("at most {}", step.free[i]),
               ", those that are free");
      }
    }
  }

  void expect_known(const TraceFields& fields, std::string_view name, int64_t id) const {
    if (!ids_.contains(id)) refuse(fields, name, id, "the id of a request above");
  }

  [[noreturn]] static void refuse(const TraceFields& fields, std::string_view name, int64_t found,
                                  std::string_view expected, std::string_view unit = "") {
    throw Error(ErrorCode::corrupt, fmt::format("{}: found {}, expected {}{}", fields.place(name),
                                                found, expected, unit));
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
      throw Error(
          ErrorCode::exhausted,
          fmt::format("{}: longer than {} bytes, the most a line may have", where, kMaxLineBytes));
    }
    const Json object = parse_json(line->text, where);
    TraceFields fields(JsonCursor(object, where));
    builder.add(fields);
  }
  if (!builder.has_start()) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: empty, expected the lines of a trace", name));
  }
  return builder.take();
}

}  // namespace paceline
