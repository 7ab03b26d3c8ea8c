#include "engine/trace_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/json_writer.h"
#include "engine/engine.h"
#include "engine/sequence.h"
#include "engine/trace_lines.h"
#include "sampling/token_mask.h"

namespace paceline {
namespace {

// Writes the parts of one array such as [7,32,88].
class PartWriter {
 public:
  explicit PartWriter(JsonWriter& writer) : writer_(writer) {}

  void operator()(int64_t value, const NumberRange&) { writer_.integer(value); }
  void operator()(float value) { writer_.number(value); }
  void operator()(FinishReason reason) { writer_.string(finish_reason_name(reason)); }

 private:
  JsonWriter& writer_;
};

// Writes fields as trace_lines.h visits them.
class FieldWriter {
 public:
  explicit FieldWriter(JsonWriter& writer) : writer_(writer) {}

  template <class T, class... Range>
  void operator()(std::string_view name, const T& value, const Range&...) {
    writer_.key(name);
    write(value);
  }
  template <class T, class... Range>
  void optional(std::string_view name, const T& value, const std::type_identity_t<T>& usual,
                const Range&... range) {
    if (value != usual) (*this)(name, value, range...);
  }
  template <class T>
  void objects(std::string_view name, const std::vector<T>& all) {
    writer_.key(name).begin_array();
    for (const T& one : all) {
      writer_.begin_object();
      visit_fields(one, *this);
      writer_.end_object();
    }
    writer_.end_array();
  }
  template <class T>
  void number(const SamplingNumber& number, const T& value) {
    writer_.member(number.name, value);
  }

 private:
  void write(bool value) { writer_.boolean(value); }
  void write(int32_t value) { writer_.integer(value); }
  void write(int64_t value) { writer_.integer(value); }
  void write(uint64_t value) { writer_.unsigned_integer(value); }
  void write(const std::string& text) { writer_.string(text); }
  template <class T>
  void write(const std::vector<T>& all) {
    writer_.begin_array();
    for (const T& one : all) write(one);
    writer_.end_array();
  }
  template <class Parts>
  void write(const Parts& parts) {
    writer_.begin_array();
    PartWriter visit(writer_);
    visit_parts(parts, visit);
    writer_.end_array();
  }

  JsonWriter& writer_;
};

TraceStart start_of(std::string_view model, const EngineLimits& limits, const StateCache& cache) {
  TraceStart start{.model = std::string(model),
                   .block_size = cache.block_size(),
                   .groups = {},
                   .max_num_seqs = limits.max_num_seqs,
                   .max_batched_tokens = limits.max_batched_tokens};
  for (int g = 0; g < cache.num_groups(); ++g) {
    start.groups.push_back({.window = cache.group(g).window, .blocks = cache.pool(g).num_blocks()});
  }
  return start;
}

TraceRequest request_of(const Sequence& sequence, int32_t choice, int64_t step) {
  const GenerateRequest& request = sequence.request();
  TraceRequest line{.id = sequence.shared->id + choice,
                    .step = step,
                    .prompt_ids = request.prompt,
                    .prompt_tokens = sequence.prompt_length,
                    .max_tokens = request.max_tokens,
                    .sampling = request.sampling,
                    .not_first = request.not_first,
                    .stop_token_ids = request.stop_token_ids,
                    .stop = request.stop_strings,
                    .eos_token_ids = request.eos_tokens,
                    .ignore_eos = request.ignore_eos,
                    .priority = request.priority,
                    .min_tokens = std::max<int64_t>(request.min_tokens, 0),
                    .skip_special_tokens = request.specials != SpecialTokens::shown,
                    .is_constrained = request.constraint != nullptr};
  line.sampling.seed += static_cast<uint64_t>(choice);
  for (const auto& [id, bias] : request.sampling.logit_bias) {
    if (std::isfinite(bias)) {
      line.logit_bias.push_back({.id = id, .bias = bias});
    } else {
      line.never.push_back(id);
    }
  }
  if (const auto& mask = request.sampling.mask) {
    line.allowed_token_ids.assign(mask->allowed().begin(), mask->allowed().end());
    line.banned.assign(mask->banned().begin(), mask->banned().end());
  }
  if (request.sampling.order == SamplerOrder::mlx) line.sampler_order = "mlx";
  return line;
}

}  // namespace

TraceWriter::TraceWriter(const std::string& path, std::string_view model,
                         const EngineLimits& limits, const StateCache& cache)
    : path_(path), file_(std::fopen(path.c_str(), "wb")) {
  if (file_ == nullptr) {
    throw Error(ErrorCode::invalid, fmt::format("--trace {}: {}", path, std::strerror(errno)));
  }
  write_line("start", start_of(model, limits, cache));
  if (file_ != nullptr && std::fflush(file_.get()) != 0) fail(errno);
  if (!problem_.empty()) throw Error(ErrorCode::exhausted, problem_);
}

TraceWriter::~TraceWriter() = default;

void TraceWriter::fail(int reason) {
  problem_ = fmt::format("--trace {}: {}", path_, std::strerror(reason));
  file_.reset();
}

void TraceWriter::finish() {
  if (file_ != nullptr && std::fclose(file_.release()) != 0) fail(errno);
  if (!problem_.empty()) throw Error(ErrorCode::exhausted, problem_ + "; the trace ends early");
}

template <class Line>
void TraceWriter::write_line(std::string_view type, const Line& line) {
  JsonWriter writer(line_);
  writer.begin_object().member("type", type);
  FieldWriter visit(writer);
  visit_fields(line, visit);
  writer.end_object();
  line_.push_back('\n');
  if (file_ != nullptr && std::fwrite(line_.data(), 1, line_.size(), file_.get()) != line_.size()) {
    fail(errno);
  }
  line_.clear();
}

// A line for each of its choices.
void TraceWriter::on_submitted(const Sequence& sequence, int64_t step) {
  for (int32_t choice = 0; choice < sequence.request().n; ++choice) {
    write_line("request", request_of(sequence, choice, step));
  }
}

void TraceWriter::on_cancelled(RequestId id, int64_t step) {
  write_line("cancel", TraceCancel{.id = id, .step = step});
}

void TraceWriter::on_step(const StepRecord& record) { write_line("step", record); }

}  // namespace paceline
