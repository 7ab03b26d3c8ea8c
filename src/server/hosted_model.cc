#include "server/hosted_model.h"

#include <utility>

#include "server/api_call.h"

namespace paceline {

HostedModel::HostedModel(ServedModel served, const RequestTerms& terms,
                         const ServerOptions& options, HttpServer& http)
    : ServedModel(std::move(served)),
      rules{.model_names = names, .terms = terms, .max_response_bytes = options.max_response_bytes},
      token_names(text.tokenizer),
      steps(observer),
      link(text.engine, http) {
  steps.on_first_draft_failure(
      [log = options.warnings, as_json = options.log_json](const std::string& failure) {
        if (log == nullptr) return;
        write_warning(*log, failure + "; its sequences are decoded without drafts", as_json);
      });
  text.engine.set_observer(&steps);
}

HostedModel::~HostedModel() {
  stop();
  text.engine.set_observer(nullptr);
}

void HostedModel::start(std::function<void(const std::string& message)> on_failure) {
  thread_ = std::make_unique<EngineThread>(text.engine, window, std::move(on_failure));
}

double HostedModel::step_age() const {
  return thread_ == nullptr ? 0 : thread_->age_of_last_step().count();
}

}  // namespace paceline
