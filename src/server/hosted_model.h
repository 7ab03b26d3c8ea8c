// HostedModel is a loaded model while it is served: its engine's thread, and the link to it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine_snapshot.h"
#include "protocol/token_names.h"
#include "server/engine_link.h"
#include "server/request_rules.h"
#include "server/served_model.h"
#include "server/server_metrics.h"
#include "server/step_history.h"

namespace paceline {

struct ServerContext;

// Used on the I/O thread; `text` and `rules` on any.
struct HostedModel : ServedModel, std::enable_shared_from_this<HostedModel> {
  // All but the served model must outlive it.
  HostedModel(ServedModel served, RequestRules its_rules, ServerContext& context,
              ServerMetrics& its_metrics);
  // Ends the engine's thread and what still runs.
  ~HostedModel();

  // Starts the engine's thread, which calls `on_failure` as EngineThread does.
  void start(std::function<void(const std::string& message)> on_failure);
  // Ends it; what still runs ends as cancelled.
  void stop() { thread_ = nullptr; }
  // Seconds since the engine's last step, 0 while it has nothing to do.
  double step_age() const;

  const RequestRules rules;
  const TokenNames token_names;
  ServerMetrics& metrics;  // of this model, also after it was loaded again
  StepHistory steps;
  EngineLink link;
  EngineSnapshot last_snapshot;  // the last one taken

 private:
  std::unique_ptr<EngineThread> thread_;  // last: it uses the others
};

}  // namespace paceline
