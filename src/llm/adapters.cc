// LLM's adapters that come and go while it runs.
#include "load/load_adapter.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/adapter_set.h"
#include "llm/llm_state.h"

namespace paceline {

void LLM::load_lora(const LoraSource& source) {
  const Call call(*this);
  if (call->max_lora_rank == 0) {
    throw Error(ErrorCode::unsupported,
                fmt::format("adapter {}: the model was loaded without room for adapters; set "
                            "enable_lora when you load it",
                            source.name));
  }
  check_lora_source(source);
  call->model->adapters->add(load_adapter(*call->model, source, call->max_lora_rank));
}

void LLM::unload_lora(std::string_view name) {
  const Call call(*this);
  if (call->model->adapters != nullptr && call->model->adapters->remove(name)) return;
  throw Error(ErrorCode::not_found,
              fmt::format("adapter {}: the model has none of this name", name));
}

std::vector<std::string> LLM::loras() const {
  const Call call(*this);
  if (call->model->adapters == nullptr) return {};
  return call->model->adapters->names();
}

}  // namespace paceline
