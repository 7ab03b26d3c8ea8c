// Ollama's routes that compute nothing: which models there are and what they can do.
#include <fmt/format.h>

#include <chrono>

#include "base/json_writer.h"
#include "base/time_source.h"
#include "base/version.h"
#include "engine/adapter_set.h"
#include "engine/engine.h"
#include "protocol/ollama_request.h"
#include "server/routes.h"
#include "server/worker_call.h"
#include "text/chat_turns.h"
#include "text/infill_prompt.h"

namespace paceline {
namespace {

// Ollama's name of a model has a tag.
std::string tagged(const std::string& name) {
  return name.find(':') == std::string::npos ? name + ":latest" : name;
}

std::string started_at(const ServerContext& context) {
  const auto since = context.started.time_since_epoch();
  return rfc3339(std::chrono::duration_cast<std::chrono::seconds>(since).count());
}

// "1.2B", "137M"
std::string size_words(int64_t num_parameters) {
  constexpr double kBillion = 1e9, kMillion = 1e6;
  const auto count = static_cast<double>(num_parameters);
  return count >= kBillion ? fmt::format("{:.1f}B", count / kBillion)
                           : fmt::format("{:.2f}M", count / kMillion);
}

// Of a model that isn't loaded little is known.
void write_details(JsonWriter& writer, const HostedModel* model) {
  const WeightFacts weights = model == nullptr ? WeightFacts() : model->text.weights;
  writer.key("details").begin_object().member("parent_model", "");
  writer.member("format", "paceline").member("family", weights.family);
  writer.key("families").begin_array().string(weights.family).end_array();
  writer.member("parameter_size", model == nullptr ? "" : size_words(weights.num_parameters));
  writer.member("quantization_level", weights.type);
  if (model != nullptr) {
    writer.member("context_length", model->text.engine.limits().max_model_len);
    writer.member("embedding_length", weights.width);
  }
  writer.end_object();
}

// As there, embedding is named where it is what the model is for.
std::vector<std::string_view> capabilities(const TextModel& model) {
  const EngineLimits& limits = model.engine.limits();
  if (!limits.has_head || limits.bidirectional || limits.classifies) {
    return model.embedding ? std::vector<std::string_view>{"embedding"}
                           : std::vector<std::string_view>{};
  }
  std::vector<std::string_view> names = {"completion"};
  const auto format = model.turns != nullptr ? model.turns->format() : nullptr;
  if (format != nullptr && format->calls) names.emplace_back("tools");
  if (format != nullptr && format->reasoning) names.emplace_back("thinking");
  if (model.tokenizer != nullptr && find_infill_tokens(*model.tokenizer)) {
    names.emplace_back("insert");
  }
  return names;
}

// The members of an entry of a list, without its end.
void write_listed(JsonWriter& writer, const HostedModel* model, const std::string& name) {
  const WeightFacts weights = model == nullptr ? WeightFacts() : model->text.weights;
  writer.begin_object().member("name", tagged(name)).member("model", tagged(name));
  writer.member("size", weights.num_bytes).member("digest", weights.digest);
  write_details(writer, model);
}

// A model's names, and those of its adapters.
std::vector<std::string> names_of(const ModelEntry& entry, const HostedModel* model) {
  std::vector<std::string> names = entry.names;
  const AdapterSet* adapters = model == nullptr ? nullptr : model->text.adapters;
  for (const std::string& name : adapters == nullptr ? entry.adapters : adapters->names()) {
    names.push_back(name);
  }
  return names;
}

// The lines of a Modelfile's parameters: what the model's files set.
std::string parameters(const TextModel& model) {
  const GenerateOptions& set = model.generation.defaults;
  std::string lines;
  const auto add = [&](std::string_view name, const auto& value) {
    if (value) lines += fmt::format("{:<30} {}\n", name, *value);
  };
  add("temperature", set.temperature);
  add("top_k", set.top_k);
  add("top_p", set.top_p);
  add("min_p", set.min_p);
  add("repeat_penalty", set.repetition_penalty);
  if (!lines.empty()) lines.pop_back();
  return lines;
}

std::string shown_model(const HostedModel* hosted, const std::string& modified_at) {
  return object_json([&](JsonWriter& writer) {
    write_details(writer, hosted);
    writer.member("modified_at", modified_at).key("model_info").begin_object();
    if (hosted == nullptr) return void(writer.end_object());
    const TextModel& model = hosted->text;
    const WeightFacts& weights = model.weights;
    writer.member("general.architecture", weights.family);
    writer.member("general.parameter_count", weights.num_parameters);
    const auto add = [&](std::string_view name, int64_t value) {
      writer.member(fmt::format("{}.{}", weights.family, name), value);
    };
    add("context_length", model.engine.limits().max_model_len);
    add("embedding_length", weights.width);
    add("block_count", weights.num_layers);
    add("vocab_size", model.engine.vocab_size());
    writer.end_object().member("parameters", parameters(model)).key("template");
    writer.string(model.chat_template == nullptr ? "" : model.chat_template->source());
    writer.member("capabilities", capabilities(model));
  });
}

// When the model will be unloaded, if it isn't used; of one that never is, the end of time.
std::string expires_at(const ModelStatus& status) {
  if (!status.sleeps_in) return "9999-12-31T23:59:59Z";
  const auto at = WallClock::now() + *status.sleeps_in;
  return rfc3339(std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count());
}

// {"models": [...]}, to which `write` adds the entries of each model; null: it isn't loaded.
template <class Write>
void respond_with_models(const CallPtr& call, const Write& write) {
  const ModelHost& host = call->context().host;
  call->respond_json(object_json([&](JsonWriter& writer) {
    writer.key("models").begin_array();
    for (size_t i = 0; i < host.num_models(); ++i) write(writer, i, host.look(i).get());
    writer.end_array();
  }));
}

}  // namespace

void list_ollama_models(const CallPtr& call) {
  const ModelHost& host = call->context().host;
  const std::string modified_at = started_at(call->context());
  respond_with_models(call, [&](JsonWriter& writer, size_t index, const HostedModel* model) {
    for (const std::string& name : names_of(host.entry(index), model)) {
      write_listed(writer, model, name);
      writer.member("modified_at", modified_at).end_object();
    }
  });
}

void list_loaded_ollama_models(const CallPtr& call) {
  const ModelHost& host = call->context().host;
  respond_with_models(call, [&](JsonWriter& writer, size_t index, const HostedModel* model) {
    if (model == nullptr) return;
    const WeightFacts& weights = model->text.weights;
    write_listed(writer, model, host.entry(index).names[0]);
    writer.member("expires_at", expires_at(host.status(index)));
    writer.member("size_vram", weights.is_on_device ? weights.num_bytes : 0);
    writer.member("context_length", model->text.engine.limits().max_model_len).end_object();
  });
}

// Loads nothing: clients describe every model of a list.
void show_ollama_model(const CallPtr& call) {
  on_worker(call,
            [body = take_body(*call), &context = call->context(),
             modified_at = started_at(call->context())]() -> Continuation {
              const std::optional<std::string> name = parse_ollama_show(body(), context.terms);
              const ModelLease model = context.host.look(context.host.choose(name));
              return respond_with({.body = shown_model(model.get(), modified_at)});
            });
}

// The version of Ollama whose API this is, for clients that ask for one, and then the server's own.
void show_ollama_version(const CallPtr& call) {
  call->respond_json(object_json([](JsonWriter& writer) {
    writer.member("version", fmt::format("0.24.0-paceline.{}", kVersion));
  }));
}

void refuse_management(const CallPtr& call) {
  call->fail({ErrorReason::feature_disabled,
              fmt::format("{} {}: not supported; the server has the models that it is started with",
                          call->exchange().request().method, call->exchange().request().path)});
}

}  // namespace paceline
