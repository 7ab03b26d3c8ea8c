#include "server/hosted_model.h"

#include <utility>

#include "server/api_call.h"

namespace paceline {

HostedModel::HostedModel(ServedModel served, RequestRules its_rules, ServerContext& context,
                         ServerMetrics& its_metrics)
    : ServedModel(std::move(served)),
      rules(std::move(its_rules)),
      token_names(text.tokenizer),
      metrics(its_metrics),
      steps(observer),
      link(text.engine, context.http) {
  steps.on_first_draft_failure([log = context.options.warnings,
                                as_json = context.options.log_json](const std::string& failure) {
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
  thread_ = std::make_unique<EngineThread>(text.engine, window, std::move(on_failure), turns);
}

double HostedModel::step_age() const {
  return thread_ == nullptr ? 0 : thread_->age_of_last_step().count();
}

}  // namespace paceline
