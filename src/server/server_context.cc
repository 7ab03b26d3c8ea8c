#include "server/server_context.h"

#include "engine/engine_thread.h"

namespace paceline {

double ServerContext::step_age() const {
  return engine_thread == nullptr ? 0 : engine_thread->age_of_last_step().count();
}

bool ServerContext::is_engine_well() const {
  constexpr double kLongestStep = 10;
  return step_age() < kLongestStep;
}

}  // namespace paceline
