// GET /props and GET /slots: the server as llama.cpp's clients see it.
#include "base/json_writer.h"
#include "base/version.h"
#include "engine/engine.h"
#include "engine/engine_snapshot.h"
#include "protocol/llama_request.h"
#include "server/model_call.h"
#include "server/routes.h"
#include "text/generation_options.h"
#include "text/make_request.h"

namespace paceline {
namespace {

constexpr uint64_t kRandomSeed = 0xFFFFFFFF;  // llama.cpp's word for it

// The options of a request that sets none, whose text ends when the context is full.
void write_default_settings(JsonWriter& writer, const HostedModel& model) {
  const EngineLimits& limits = model.text.engine.limits();
  const LlamaStyle style{.model = model.names[0],
                         .context = limits.max_model_len,
                         .max_drafted = limits.speculation.num_tokens};
  GenerateRequest request;
  request.max_tokens = -1;
  GenerateOptions options;
  options.seed = kRandomSeed;
  request.sampling = sampling_options(complete_options(model.text, options));
  writer.key("default_generation_settings").begin_object();
  writer.member("n_ctx", limits.max_model_len).key("params");
  writer.raw(llama_settings_json(request, style)).end_object();
}

void write_special_tokens(JsonWriter& writer, const Tokenizer& tokenizer) {
  for (const auto& [name, text] : tokenizer.special_tokens()) {
    if (name == "bos_token" || name == "eos_token") writer.member(name, text);
  }
}

void write_slot(JsonWriter& writer, int64_t id, const EngineLimits& limits,
                const SequenceSnapshot* sequence) {
  writer.begin_object().member("id", id);
  writer.member("id_task", sequence == nullptr ? -1 : sequence->sequence);
  writer.member("n_ctx", limits.max_model_len);
  writer.member("speculative", limits.speculation.num_tokens > 0);
  writer.member("is_processing", sequence != nullptr);
  if (sequence != nullptr) {
    writer.key("next_token").begin_object().member("has_next_token", true);
    writer.member("n_remain", sequence->max_tokens - sequence->output_tokens);
    writer.member("n_decoded", sequence->output_tokens).end_object();
  }
  writer.end_object();
}

std::string props_json(const HostedModel& hosted) {
  const TextModel& model = hosted.text;
  return object_json([&](JsonWriter& writer) {
    write_default_settings(writer, hosted);
    const EngineLimits& limits = model.engine.limits();
    writer.member("total_slots", limits.max_num_seqs);
    writer.member("max_num_batched_tokens", limits.max_batched_tokens);
    writer.member("max_step_slowdown", limits.max_step_slowdown);
    writer.member("device", model.device);
    writer.member("model_alias", hosted.names[0]).member("model_path", model.name);
    writer.key("chat_template");
    writer.string(model.chat_template == nullptr ? "" : model.chat_template->source());
    if (model.tokenizer != nullptr) write_special_tokens(writer, *model.tokenizer);
    writer.key("modalities").begin_object().member("vision", false).member("audio", false);
    writer.end_object().member("build_info", kGitDescribe);
  });
}

}  // namespace

void show_props(const CallPtr& call) {
  with_model(call, [](const CallPtr& ready) { ready->respond_json(props_json(*ready->model())); });
}

// None of a model that isn't loaded.
void show_slots(const CallPtr& call) {
  const SnapshotAnswer answer = [](const auto& ready, const auto& models, const auto& snapshots) {
    std::string json;
    JsonWriter writer(json);
    writer.begin_array();
    int64_t id = 0;
    for (size_t i = 0; i < models.size(); ++i) {
      const EngineLimits& limits = models[i]->text.engine.limits();
      for (const SequenceSnapshot& sequence : snapshots[i].sequences) {
        if (sequence.is_running) write_slot(writer, id++, limits, &sequence);
      }
      while (id < limits.max_num_seqs) write_slot(writer, id++, limits, nullptr);
    }
    writer.end_array();
    ready->respond_json(std::move(json));
  };
  with_snapshots(call, loaded_model_of_query(*call), answer);
}

}  // namespace paceline
