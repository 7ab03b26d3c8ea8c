// What `inspect` says a run takes is what the runner allocates.
#include <gtest/gtest.h>

#include <string>

#include "engine/model_runner.h"
#include "kernels/backend.h"
#include "load/loaded_model.h"
#include "models/decoder.h"

namespace paceline {
namespace {

TEST(ModelRunnerMemory, is_known_from_the_config) {
  for (const std::string name : {"qwen3_tied", "gemma2_even"}) {
    SCOPED_TRACE(name);
    const auto model = load_model({.model = PACELINE_SOURCE_DIR "/tests/goldens/models/" + name,
                                   .kv_cache_memory_bytes = 1 << 20,
                                   .num_threads = 1});
    for (const int64_t max_rows : {16, 512}) {
      const RunnerLimits limits{.max_rows = max_rows};
      const size_t before = model->memory.stats().active_bytes;
      const ModelRunner runner(*model->decoder, *model->backend, model->memory,
                               KvStorage({}, 16, DType::f32, model->memory), limits);
      EXPECT_EQ(model->memory.stats().active_bytes - before,
                runner_activation_bytes(model->decoder->config(), limits));
    }
  }
}

}  // namespace
}  // namespace paceline
