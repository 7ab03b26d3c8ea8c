#include "engine/trace_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/json_writer.h"
#include "engine/engine.h"
#include "engine/sequence.h"
#include "sampling/token_mask.h"

namespace paceline {
namespace {

int64_t microseconds(double seconds) { return static_cast<int64_t>(seconds * 1e6); }

template <class Numbers>
void write_numbers(JsonWriter& writer, std::string_view key, const Numbers& numbers) {
  writer.key(key).begin_array();
  for (const auto number : numbers) writer.integer(number);
  writer.end_array();
}

// Pairs of an id and a number.
template <class Pairs>
void write_pairs(JsonWriter& writer, std::string_view key, const Pairs& pairs) {
  writer.key(key).begin_array();
  for (const auto& [id, number] : pairs) {
    writer.begin_array().integer(id).integer(number).end_array();
  }
  writer.end_array();
}

void write_mask(JsonWriter& writer, const TokenMask& mask) {
  write_numbers(writer, "allowed_token_ids", mask.allowed());
  writer.key("banned").begin_array();
  for (const auto& sequence : mask.banned()) {
    writer.begin_array();
    for (const int32_t id : sequence) writer.integer(id);
    writer.end_array();
  }
  writer.end_array();
}

void write_sampling(JsonWriter& writer, const SamplingOptions& sampling, int32_t choice) {
  for (const SamplingNumber& number : kSamplingNumbers) {
    std::visit([&](auto member) { writer.member(number.name, sampling.*member); }, number.member);
  }
  writer.key("logit_bias").begin_array();
  std::vector<int32_t> never;
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (std::isfinite(bias)) {
      writer.begin_array().integer(id).number(bias).end_array();
    } else {
      never.push_back(id);
    }
  }
  writer.end_array();
  if (!never.empty()) write_numbers(writer, "never", never);
  if (sampling.mask) write_mask(writer, *sampling.mask);
  if (sampling.order == SamplerOrder::mlx) writer.member("sampler_order", "mlx");
  writer.member("seed", sampling.seed + static_cast<uint64_t>(choice));
}

}  // namespace

TraceWriter::TraceWriter(const std::string& path, std::string_view model, const Engine& engine)
    : path_(path), file_(std::fopen(path.c_str(), "wb")) {
  if (file_ == nullptr) {
    throw Error(ErrorCode::invalid, fmt::format("--trace {}: {}", path, std::strerror(errno)));
  }
  const KvCache& cache = engine.cache();
  JsonWriter writer(line_);
  writer.begin_object().member("type", "start").member("model", model);
  writer.member("block_size", cache.block_size()).key("groups").begin_array();
  for (int g = 0; g < cache.num_groups(); ++g) {
    writer.begin_object().member("window", cache.group(g).window);
    writer.member("blocks", cache.pool(g).num_blocks()).end_object();
  }
  writer.end_array().member("max_num_seqs", engine.limits().max_num_seqs);
  writer.member("max_batched_tokens", engine.limits().max_batched_tokens).end_object();
  write_line();
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

void TraceWriter::write_line() {
  line_.push_back('\n');
  if (file_ != nullptr && std::fwrite(line_.data(), 1, line_.size(), file_.get()) != line_.size()) {
    fail(errno);
  }
  line_.clear();
}

// A line for each of its choices.
void TraceWriter::on_submitted(const Sequence& sequence, int64_t step) {
  const GenerateRequest& request = sequence.request();
  for (int32_t choice = 0; choice < request.n; ++choice) {
    JsonWriter writer(line_);
    writer.begin_object().member("type", "request").member("id", sequence.shared->id + choice);
    writer.member("step", step);
    write_numbers(writer, "prompt_ids", request.prompt);
    writer.member("prompt_tokens", sequence.prompt_length);
    writer.member("max_tokens", request.max_tokens);
    write_sampling(writer, request.sampling, choice);
    write_numbers(writer, "stop_token_ids", request.stop_token_ids);
    writer.key("stop").begin_array();
    for (const std::string& stop : request.stop_strings) writer.string(stop);
    writer.end_array();
    write_numbers(writer, "eos_token_ids", request.eos_tokens);
    writer.member("ignore_eos", request.ignore_eos).member("priority", request.priority);
    if (request.min_tokens > 0) writer.member("min_tokens", request.min_tokens);
    if (request.specials == SpecialTokens::shown) writer.member("skip_special_tokens", false);
    writer.end_object();
    write_line();
  }
}

void TraceWriter::on_cancelled(RequestId id, int64_t step) {
  JsonWriter writer(line_);
  writer.begin_object().member("type", "cancel").member("id", id).member("step", step);
  writer.end_object();
  write_line();
}

void TraceWriter::on_step(const StepRecord& record) {
  JsonWriter writer(line_);
  const double at = std::chrono::duration<double>(record.begin - begin_).count();
  writer.begin_object().member("type", "step").member("step", record.step);
  writer.member("at_us", microseconds(at)).member("plan_us", microseconds(record.plan_seconds));
  writer.member("forward_us", microseconds(record.forward_seconds));
  writer.member("total_us", microseconds(record.total_seconds));
  writer.member("rows", record.num_rows).member("waiting", record.num_waiting);
  write_numbers(writer, "free", record.free_blocks);
  write_numbers(writer, "cached", record.cached_blocks);
  write_pairs(writer, "admitted", record.admitted);
  write_numbers(writer, "preempted", record.preempted);
  writer.key("slices").begin_array();
  for (const StepRecord::Slice& slice : record.slices) {
    writer.begin_array().integer(slice.id).integer(slice.first).integer(slice.count).end_array();
  }
  writer.end_array();
  write_pairs(writer, "blocks", record.blocks);
  write_pairs(writer, "tokens", record.tokens);
  writer.key("finished").begin_array();
  for (const StepRecord::IdAndReason& one : record.finished) {
    writer.begin_array().integer(one.id).string(finish_reason_name(one.reason)).end_array();
  }
  writer.end_array().end_object();
  write_line();
}

}  // namespace paceline
