// Models: loading, closing, what they are, their memory and figures.
#include "capi/call_status.h"
#include "capi/handles.h"
#include "capi/load_options.h"

namespace paceline::capi {

LLM& llm_of(paceline_model* model) {
  check_given(model, "model");
  return model->llm;
}

}  // namespace paceline::capi

using namespace paceline;
using namespace paceline::capi;

paceline_status paceline_load(const paceline_load_options* options, paceline_model** model) {
  return guarded([&] {
    begin_result(model, "model");
    *model = new paceline_model{LLM::load(load_options(options))};
  });
}

paceline_status paceline_close(paceline_model* model) {
  return guarded([&] { llm_of(model).close(); });
}

void paceline_free_model(paceline_model* model) { delete model; }

paceline_status paceline_get_model_info(paceline_model* model, const paceline_model_info** info) {
  return guarded([&] {
    begin_result(info, "info");
    const ModelInfo found = llm_of(model).model_info();
    auto result = std::make_unique<Owned<paceline_model_info>>();
    ResultStore& store = result->store;
    static_cast<paceline_model_info&>(*result) = {
        .path = store.keep(found.path),
        .family = store.keep(found.family),
        .dtype = store.keep(found.dtype),
        .weight_format = store.keep(found.weight_format),
        .chat_template = store.keep(found.chat_template),
        .num_layers = found.num_layers,
        .vocab_size = found.vocab_size,
        .max_model_len = found.max_model_len,
        .num_parameters = found.num_parameters,
        .weight_bytes = found.weight_bytes,
        .kv_cache_bytes = found.kv_cache_bytes,
        .has_tokenizer = found.has_tokenizer ? 1 : 0,
        .has_chat_template = found.has_chat_template ? 1 : 0};
    *info = result.release();
  });
}

void paceline_free_model_info(const paceline_model_info* info) { free_owned(info); }

paceline_status paceline_get_device_info(const paceline_load_options* options,
                                         const paceline_device_info** info) {
  return guarded([&] {
    begin_result(info, "info");
    LoadOptions load;
    if (options != nullptr) {
      paceline_load_options named = complete(options, paceline_load_options_init, "options");
      if (named.model == nullptr) named.model = "";
      load = load_options(&named);
    }
    const DeviceInfo found = LLM::device_info(load);
    auto result = std::make_unique<Owned<paceline_device_info>>();
    static_cast<paceline_device_info&>(*result) = {
        .name = result->store.keep(found.name),
        .instruction_set = result->store.keep(found.instruction_set),
        .num_threads = found.num_threads,
        .total_memory_bytes = found.total_memory_bytes,
        .free_memory_bytes = found.free_memory_bytes};
    *info = result.release();
  });
}

void paceline_free_device_info(const paceline_device_info* info) { free_owned(info); }

paceline_status paceline_memory_use(paceline_model* model, paceline_memory* use) {
  return guarded([&] {
    check_given(use, "use");
    const MemoryUse found = llm_of(model).memory_use();
    *use = {.active_bytes = found.active_bytes,
            .peak_bytes = found.peak_bytes,
            .cached_bytes = found.cached_bytes};
  });
}

paceline_status paceline_clear_cache(paceline_model* model) {
  return guarded([&] { llm_of(model).clear_memory_cache(); });
}

paceline_status paceline_reset_peak(paceline_model* model) {
  return guarded([&] { llm_of(model).reset_peak_memory(); });
}

paceline_status paceline_set_memory_limit(paceline_model* model, uint64_t bytes,
                                          uint64_t* old_bytes) {
  return guarded([&] {
    const size_t old = llm_of(model).set_memory_limit(bytes);
    if (old_bytes != nullptr) *old_bytes = old;
  });
}

paceline_status paceline_set_cache_limit(paceline_model* model, uint64_t bytes,
                                         uint64_t* old_bytes) {
  return guarded([&] {
    const size_t old = llm_of(model).set_cache_limit(bytes);
    if (old_bytes != nullptr) *old_bytes = old;
  });
}

paceline_status paceline_get_metrics(paceline_model* model, paceline_metrics* metrics) {
  return guarded([&] {
    check_given(metrics, "metrics");
    const Metrics found = llm_of(model).metrics();
    *metrics = {.prompt_tokens = found.prompt_tokens,
                .completion_tokens = found.completion_tokens,
                .cached_tokens = found.cached_tokens,
                .preemptions = found.preemptions,
                .drafted_tokens = found.drafted_tokens,
                .accepted_tokens = found.accepted_tokens,
                .prefill_tokens_per_second = found.prefill_tokens_per_second,
                .decode_tokens_per_second = found.decode_tokens_per_second,
                .time_to_first_token_seconds = found.time_to_first_token_seconds,
                .peak_memory_bytes = found.peak_memory_bytes};
  });
}

paceline_status paceline_load_adapter(paceline_model* model, const char* name, const char* path,
                                      double scale) {
  return guarded([&] {
    LLM& llm = llm_of(model);
    check_given(name, "name");
    check_given(path, "path");
    llm.load_lora({.name = name, .path = path, .scale = scale});
  });
}

paceline_status paceline_unload_adapter(paceline_model* model, const char* name) {
  return guarded([&] {
    LLM& llm = llm_of(model);
    check_given(name, "name");
    llm.unload_lora(name);
  });
}
