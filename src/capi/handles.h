// What the opaque types of the C API are.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "capi/ready_queue.h"
#include "capi/result_store.h"
#include "paceline/llm.h"
#include "paceline/paceline.h"

struct paceline_model {
  paceline::LLM llm;
};

struct paceline_cancellation {
  std::stop_source source;
};

struct paceline_queue {
  std::shared_ptr<paceline::capi::ReadyQueue> ready;
};

// The stream throws when the model was closed; the completion stays.
struct paceline_generation {
  explicit paceline_generation(paceline::GenerationStream its_stream)
      : stream(std::move(its_stream)) {}

  paceline::GenerationStream stream;
  std::string piece;  // with the zero byte that a view lacks
  std::optional<paceline::capi::Owned<paceline_completion>> completion;
};

namespace paceline::capi {

// The model of a call. Throws Error invalid for NULL.
LLM& llm_of(paceline_model* model);

}  // namespace paceline::capi
