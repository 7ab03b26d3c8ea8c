#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "load/loaded_model.h"
#include "load/local_models.h"
#include "load/model_path.h"
#include "load/model_source.h"
#include "load/stored_model.h"
#include "models/decoder_config.h"
#include "paceline/error.h"

namespace paceline {
namespace {

struct ListedModel {
  LocalModel model;
  std::string problem;  // empty: it can be used
};

// What keeps the model from being used; its configuration and the names of its weights are read.
std::string problem_of(const LocalModel& model) {
  try {
    read_model_config(ModelSource(find_model(model.name)), LoadFormat::files);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::string models_json(const std::vector<ListedModel>& models) {
  const std::string json = object_json([&](JsonWriter& writer) {
    writer.key("models").begin_array();
    for (const auto& [model, problem] : models) {
      writer.begin_object().member("name", model.name).member("cache", model.cache);
      writer.member("path", model.path.string()).member("bytes", model.bytes).key("problem");
      problem.empty() ? writer.null() : writer.string(problem);
      writer.end_object();
    }
    writer.end_array();
  });
  return json + "\n";
}

std::string models_text(const std::vector<ListedModel>& models) {
  size_t name_width = 5, cache_width = 5;
  for (const auto& [model, problem] : models) {
    name_width = std::max(name_width, model.name.size());
    cache_width = std::max(cache_width, model.cache.size());
  }
  std::string text = fmt::format("{:<{}}  {:>9}  {:<{}}  {}\n", "MODEL", name_width, "SIZE",
                                 "CACHE", cache_width, "USABLE");
  for (const auto& [model, problem] : models) {
    text +=
        fmt::format("{:<{}}  {:>9}  {:<{}}  {}\n", model.name, name_width, bytes_text(model.bytes),
                    model.cache, cache_width, problem.empty() ? "yes" : "no: " + problem);
  }
  return text;
}

}  // namespace

int run_list(const Settings& settings, Session& session) {
  const char* const home = std::getenv("HOME");
  std::vector<ListedModel> models;
  for (LocalModel& model : find_local_models(home == nullptr ? "/" : home)) {
    std::string problem = problem_of(model);
    models.push_back({std::move(model), std::move(problem)});
  }
  session.out().write(settings.json ? models_json(models) : models_text(models));
  if (models.empty()) {
    session.print_note(
        "note: no models in the caches; `hf download OWNER/NAME` brings one, and without a model "
        "the small one that comes with Paceline is used");
  }
  return 0;
}

}  // namespace paceline
