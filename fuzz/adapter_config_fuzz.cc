// Any text is either a PEFT config, which gives each module a rank, an alpha and a finite answer,
// or an Error that names it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "adapters/peft_config.h"
#include "base/json.h"
#include "fuzz/json_mutator.h"

namespace {

using namespace paceline;

constexpr int64_t kMaxRank = 1024;
constexpr std::array<std::string_view, 24> kWords = {"peft_type",
                                                     "LORA",
                                                     "r",
                                                     "lora_alpha",
                                                     "use_rslora",
                                                     "rank_pattern",
                                                     "alpha_pattern",
                                                     "target_modules",
                                                     "exclude_modules",
                                                     "layers_to_transform",
                                                     "layers_pattern",
                                                     "init_lora_weights",
                                                     "gaussian",
                                                     "pissa",
                                                     "all-linear",
                                                     "q_proj",
                                                     "layers",
                                                     "model.layers.0.mlp.up_proj",
                                                     "(.*)*x",
                                                     "^model\\.(\\d+)$",
                                                     "[a-z]{1,9}",
                                                     "(?P<idx>.)",
                                                     "modules_to_save",
                                                     "use_dora"};

void require(bool condition) {
  if (!condition) std::abort();
}

void ask(const PeftConfig& config) {
  MatchBudget budget(std::chrono::seconds(2));
  for (const std::string_view module :
       {"model.layers.0.self_attn.q_proj", "model.language_model.layers.11.mlp.up_proj", "lm_head",
        ""}) {
    volatile bool chosen = config.targets(module, budget);
    (void)chosen;
    const int64_t rank = config.rank_of(module, budget);
    require(rank >= 1 && rank <= kMaxRank);
    const double alpha = config.alpha_of(module, budget);
    require(std::isfinite(alpha) && std::isfinite(config.scale_of(alpha, rank)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    ask(PeftConfig(parse_json(text, "input"), "input", kMaxRank));
  } catch (const Error& error) {
    require(error.code() == ErrorCode::unsupported || error.code() == ErrorCode::invalid ||
            error.code() == ErrorCode::exhausted);
    require(std::string_view(error.what()).starts_with("input: "));
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned seed) {
  return fuzz::mutate_json(kWords, 10, bytes, size, max_size, seed);
}
