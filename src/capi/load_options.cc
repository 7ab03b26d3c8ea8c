#include "capi/load_options.h"

#include <fmt/format.h>

#include "capi/call_status.h"

namespace paceline::capi {
namespace {

std::string text_or_empty(const char* text) { return text == nullptr ? std::string() : text; }

std::optional<size_t> bytes_or_default(int64_t bytes, const char* name) {
  if (bytes == PACELINE_DEFAULT) return std::nullopt;
  if (bytes < 0) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: found {}, expected bytes or PACELINE_DEFAULT", name, bytes));
  }
  return static_cast<size_t>(bytes);
}

}  // namespace

LoadOptions load_options(const paceline_load_options* given) {
  check_given(given, "options");
  const auto options = complete(given, paceline_load_options_init, "options");
  check_given(options.model, "options.model");
  LoadOptions load{
      .model = options.model,
      .load_format = options.dummy_weights != 0 ? LoadFormat::dummy : LoadFormat::files,
      .chat_template = text_or_empty(options.chat_template),
      .weights_cache = text_or_empty(options.weights_cache)};
  set_named(options.dtype, "options.dtype", load.dtype);
  set_named(options.quantize, "options.quantize", load.quantize);
  set_named(options.kv_cache_dtype, "options.kv_cache_dtype", load.kv_cache_dtype);
  set_named(options.speculative_method, "options.speculative_method", load.speculative_method);
  if (options.device != nullptr) load.device = options.device;
  if (options.backend != nullptr) load.backend = options.backend;
  if (options.python != nullptr) load.python = options.python;
  load.backend_timeout_s = options.backend_timeout_s;
  load.speculative_model = text_or_empty(options.speculative_model);
  load.num_threads = options.num_threads;
  load.enable_lora = options.enable_lora != 0;
  if (options.max_model_len != PACELINE_DEFAULT) load.max_model_len = options.max_model_len;
  load.max_num_seqs = options.max_num_seqs;
  load.max_num_batched_tokens = options.max_num_batched_tokens;
  load.block_size = options.block_size;
  load.kv_cache_memory_bytes =
      bytes_or_default(options.kv_cache_memory_bytes, "options.kv_cache_memory_bytes");
  load.memory_limit_bytes =
      bytes_or_default(options.memory_limit_bytes, "options.memory_limit_bytes");
  load.prefix_caching = options.prefix_caching != 0;
  if (options.progress != nullptr) {
    load.progress = [call = options.progress, user = options.progress_user](
                        uint64_t done, uint64_t total) { call(done, total, user); };
  }
  return load;
}

}  // namespace paceline::capi

using namespace paceline;

void paceline_load_options_init(paceline_load_options* options) {
  const LoadOptions defaults;
  *options = {};
  options->size = sizeof(*options);
  options->max_model_len = PACELINE_DEFAULT;
  options->max_num_seqs = defaults.max_num_seqs;
  options->block_size = defaults.block_size;
  options->kv_cache_memory_bytes = PACELINE_DEFAULT;
  options->memory_limit_bytes = PACELINE_DEFAULT;
  options->prefix_caching = 1;
  options->backend_timeout_s = defaults.backend_timeout_s;
}
