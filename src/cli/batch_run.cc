#include "cli/batch_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/chat_input.h"

namespace paceline {
namespace {

// Keeps the engine busy, and bounds the memory of a file of long prompts.
constexpr int64_t kInFlightPerSequence = 4;
constexpr size_t kMaxBytesInFlight = 64 << 20;

// An interruption ended some of its choices: the job has no result yet.
bool was_cancelled(const BatchJob& job) {
  return std::any_of(job.parts.begin(), job.parts.end(), [](const CompletedPart& part) {
    return std::any_of(part.choices.begin(), part.choices.end(), [](const Completion& completion) {
      return completion.finish_reason == "cancelled";
    });
  });
}

ChatRequest* chat_of(Call& call) {
  auto* generation = std::get_if<GenerationCall>(&call);
  return generation == nullptr ? nullptr : std::get_if<ChatRequest>(&generation->request);
}

}  // namespace

BatchRun::BatchRun(LLM& llm, const Settings& settings, Session& session,
                   std::vector<std::string> model_names)
    : llm_(llm),
      settings_(settings),
      session_(session),
      model_names_(std::move(model_names)),
      names_(settings),
      progress_(session.shows_progress(), "requests", 0),
      pool_(llm) {}

BatchRun::~BatchRun() {
  for (auto& [id, running] : jobs_) running->job.stop.request_stop();
}

BatchCounts BatchRun::run(LineReader& input, FinishedRequests& finished, BatchResults& results) {
  Files files{input, finished, results};
  while (true) {
    feed(files);
    auto done = pool_.next();
    if (!done) break;
    collect(std::move(*done), files);
    show_progress(files);
  }
  return counts_;
}

void BatchRun::feed(Files& files) {
  const int64_t most = kInFlightPerSequence * settings_.load.max_num_seqs;
  while (!session_.interrupted() && pool_.in_flight() < most) {
    if (!unsubmitted_.empty()) {
      submit_next_part(files);
      continue;
    }
    if (at_end_ || bytes_in_flight_ > kMaxBytesInFlight) return;
    const auto line = files.input.next();
    if (!line) {
      at_end_ = true;
    } else if (!line->is_blank() || line->is_too_long) {
      take_line(*line, files);
    }
  }
}

void BatchRun::take_line(const Line& text, Files& files) {
  ++lines_taken_;
  BatchLine line = read_batch_line(text);
  if (!line.error && !files.finished.note_seen(line.custom_id)) {
    set_line_error(line, "duplicate_custom_id",
                   fmt::format("custom_id: {} is in an earlier line too", line.custom_id));
  }
  if (line.error) {
    write_line_error(line, files);
  } else if (files.finished.is_done(line.custom_id)) {
    ++counts_.done_before;
  } else {
    start(line, text.text.size(), files);
  }
}

// Sets the adapter that the request's model names.
void BatchRun::choose_model(Call& call) const {
  CommonFields& common = common_fields_of(call);
  const auto& model = common.model;
  if (!model || std::find(model_names_.begin(), model_names_.end(), *model) != model_names_.end()) {
    return;
  }
  std::vector<std::string> names = model_names_;
  for (const LoraSource& adapter : settings_.load.loras) names.push_back(adapter.name);
  if (std::find(names.begin(), names.end(), *model) == names.end()) {
    throw RequestError(
        "model", ErrorReason::model_not_found,
        fmt::format(
            "model: found {}, expected {} (--served-model-name gives the model other names)",
            *model, fmt::join(names, " or ")));
  }
  common.lora = *model;
}

void BatchRun::start(const BatchLine& line, size_t num_bytes, Files& files) {
  try {
    Call call = parse_batch_call(*line.dialect, line.body);
    choose_model(call);
    if (ChatRequest* chat = chat_of(call)) add_system_message(settings_.system, chat->input);
    const size_t parts = num_parts(call);
    BatchJob job{.custom_id = line.custom_id,
                 .num_bytes = num_bytes,
                 .call = std::move(call),
                 .parts = std::vector<CompletedPart>(parts)};
    const StopJob stop_job{job.stop};
    const int64_t id = next_id_++;
    jobs_.emplace(id, new Running{.job = std::move(job),
                                  .on_interruption = std::stop_callback<StopJob>(
                                      session_.stop_token(), stop_job)});
    bytes_in_flight_ += num_bytes;
    unsubmitted_.push_back(id);
  } catch (const Error& error) {
    write_failure(line.custom_id, api_error(error), files);
  }
}

void BatchRun::submit_next_part(Files& files) {
  const int64_t job_id = unsubmitted_.front();
  BatchJob& job = jobs_.at(job_id)->job;
  const size_t index = job.next_part++;
  try {
    const int64_t tag = next_id_++;
    submit_part(pool_, llm_, tag, job, index, settings_.generate.seed);
    parts_.emplace(tag, Part{.job_id = job_id, .index = index});
    ++job.num_in_flight;
  } catch (const Error& error) {
    if (!job.error) job.error = api_error(error);
    job.stop.request_stop();
  }
  if (job.error || job.next_part == job.parts.size()) unsubmitted_.pop_front();
  close_if_finished(job_id, files);
}

void BatchRun::collect(RequestPool::Done done, Files& files) {
  const auto found = parts_.find(done.tag);
  const Part part = found->second;
  parts_.erase(found);
  BatchJob& job = jobs_.at(part.job_id)->job;
  --job.num_in_flight;
  if (auto* choices = std::get_if<std::vector<Completion>>(&done.result)) {
    job.parts[part.index].choices = std::move(*choices);
  } else if (auto* classification = std::get_if<Classification>(&done.result)) {
    job.parts[part.index].classification = std::move(*classification);
  } else if (auto* embedding = std::get_if<Embedding>(&done.result)) {
    job.parts[part.index].embedding = std::move(embedding->values);
    job.parts[part.index].prompt_tokens = embedding->usage.prompt_tokens;
  } else if (!job.error) {
    job.error = api_error(std::get<ErrorInfo>(done.result));
    job.stop.request_stop();
    std::erase(unsubmitted_, part.job_id);
  }
  close_if_finished(part.job_id, files);
}

void BatchRun::close_if_finished(int64_t job_id, Files& files) {
  const BatchJob& job = jobs_.at(job_id)->job;
  if (!job.is_finished()) return;
  const bool is_unfinished =
      session_.interrupted() &&
      (was_cancelled(job) || (job.error && job.error->reason == ErrorReason::cancelled));
  if (!is_unfinished) write_response(job, files);
  bytes_in_flight_ -= job.num_bytes;
  jobs_.erase(job_id);
}

void BatchRun::write_response(const BatchJob& job, Files& files) {
  if (job.error) return write_failure(job.custom_id, *job.error, files);
  const auto& model = common_fields_of(job.call).model;
  const BatchResponse answer = respond_to(job, model.value_or(model_names_.front()), names_);
  constexpr int kOk = 200;
  files.results.append(batch_response_record(job.custom_id, kOk, answer.body));
  ++counts_.answered;
  counts_.prompt_tokens += answer.usage.prompt_tokens;
  counts_.cached_tokens += answer.usage.cached_tokens.value_or(0);
  counts_.completion_tokens += answer.usage.completion_tokens;
  counts_.drafted_tokens += answer.usage.drafted_tokens;
  counts_.accepted_tokens += answer.usage.accepted_tokens;
}

void BatchRun::write_failure(const std::string& custom_id, const ApiError& error, Files& files) {
  files.results.append(
      batch_response_record(custom_id, openai_kind(error.reason).status, error_json(error)));
  ++counts_.failed;
}

void BatchRun::write_line_error(const BatchLine& line, Files& files) {
  if (files.finished.is_reported(line.number)) {
    ++counts_.done_before;
    return;
  }
  files.results.append(batch_error_record(line));
  ++counts_.bad_lines;
}

void BatchRun::show_progress(const Files& files) {
  const double share = files.input.share_read();
  const auto total =
      share > 0 ? static_cast<int64_t>(static_cast<double>(lines_taken_) / share) : 0;
  progress_.update(counts_.finished(), std::max<int64_t>(total - counts_.done_before, 0));
}

}  // namespace paceline
