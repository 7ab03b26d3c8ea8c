#include "cli/batch_answer.h"

#include "cli/model_opening.h"
#include "protocol/completed_responses.h"

namespace paceline {
namespace {

struct Answering {
  const BatchJob& job;
  const std::string& model;
  const TokenNames& names;

  BatchAnswer operator()(const CompletionRequest& request) const {
    const CompletionResponse answer =
        completed_response(request, job.parts, names, new_head(kCompletionIdPrefix, model));
    return {completion_response_json(answer), answer.usage};
  }

  BatchAnswer operator()(const ChatRequest& request) const {
    const ChatResponse answer =
        completed_response(request, job.parts[0], names, new_head(kChatIdPrefix, model));
    return {chat_response_json(answer), answer.usage};
  }

  BatchAnswer operator()(const ClassificationRequest& request) const {
    const ClassificationResponse answer =
        completed_response(request, job.parts, new_head(kClassificationIdPrefix, model));
    return {classification_response_json(answer), answer.usage};
  }
};

}  // namespace

const TokenNames& BatchTokenNames::get() {
  if (!names_) {
    try {
      tokenizer_ = open_tokenizer(settings_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_found) throw;
    }
    names_.emplace(tokenizer_ ? &*tokenizer_ : nullptr);
  }
  return *names_;
}

BatchAnswer answer_job(const BatchJob& job, const std::string& model, BatchTokenNames& names) {
  static const TokenNames no_names(nullptr);
  const TokenNames& of_tokens = names_tokens(job.request) ? names.get() : no_names;
  return std::visit(Answering{job, model, of_tokens}, job.request);
}

}  // namespace paceline
