// Each field of each family's config.json: absent, null, out of range, huge and of a wrong type.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "kernels/backend.h"
#include "layers/load_context.h"
#include "models/decoder.h"
#include "models/family.h"
#include "paceline/error.h"
#include "tests/build_kind.h"
#include "tests/source_path.h"
#include "tests/test_scale.h"
#include "weights/expert_checkpoint.h"

namespace paceline::testing {
namespace {

constexpr size_t kMaxBytes = size_t{200} << 20;  // of one load; the models have 300 KB

const std::vector<std::string> kModels = {"llama_plain",
                                          "mistral_window",
                                          "qwen2_tied",
                                          "qwen3_tied",
                                          "gemma2_even",
                                          "gemma3_text_pattern2",
                                          "gemma3_model_prefix",
                                          "gemma4_layer_inputs",
                                          "gemma4_experts",
                                          "cohere2_tied",
                                          "granite_bias",
                                          "ministral3_growth",
                                          "qwen2_moe_sparse_step",
                                          "qwen3_moe_tied",
                                          "olmoe_plain",
                                          "mixtral_plain",
                                          "granitemoeshared_tied_stacked",
                                          "granitemoehybrid_no_rope",
                                          "granitemoehybrid_mamba",
                                          "bamba_groups",
                                          "mamba2_alone",
                                          "jamba_moe",
                                          "falcon_h1_multipliers",
                                          "nemotron_h_moe",
                                          "qwen3_next_stacked",
                                          "olmo_hybrid_joined",
                                          "lfm2_tied",
                                          "lfm2_moe_tied",
                                          "lfm3_tied",
                                          "kimi_linear_moe",
                                          "deepseek_v2_lite"};

std::filesystem::path directory_of(const std::string& model) {
  for (const char* const kind : {"models", "latents", "mixed"}) {
    const std::filesystem::path path =
        source_path(std::string("tests/goldens/") + kind + "/" + model);
    if (std::filesystem::exists(path)) return path;
  }
  return source_path("tests/goldens/hybrids/" + model);
}

Json json_of(const std::string& text) { return parse_json(text, "test"); }

// A rope of each kind, for the fields inside it.
std::map<std::string, Json> ropes_of(int64_t rotary_dim) {
  std::string factors = "1";
  for (int64_t i = 1; i < rotary_dim / 2; ++i) factors += ", 1";
  return {
      {"linear", json_of(R"({"rope_type": "linear", "factor": 2, "rope_theta": 500})")},
      {"llama3", json_of(R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
                             "high_freq_factor": 4, "original_max_position_embeddings": 64})")},
      {"yarn", json_of(R"({"rope_type": "yarn", "factor": 4,
                           "original_max_position_embeddings": 64})")},
      {"longrope", json_of(R"({"rope_type": "longrope", "attention_factor": 1, "short_factor": [)" +
                           factors + R"(], "long_factor": [)" + factors + "]}")}};
}

// Whether the path that the message is about has the field: "config.json: rope_scaling.factor:
// ...".
bool names_field(std::string_view message, std::string_view name) {
  for (const std::string_view before : {": ", "."}) {
    for (const std::string_view behind : {": ", ".", "["}) {
      const std::string step = std::string(before) + std::string(name) + std::string(behind);
      if (message.find(step) != message.npos) return true;
    }
  }
  return false;
}

// Whether the message names a field, or the tensor whose shape contradicts one.
bool names_a_field(std::string_view message) {
  if (message.find("tensor") != message.npos) return true;
  return std::ranges::any_of(
      config_fields(), [&](const ConfigField& field) { return names_field(message, field.name); });
}

// `object` with the field set, or without it.
Json changed(const Json& object, std::string_view key, const std::optional<Json>& value) {
  Json::Object members;
  for (const auto& [name, member] : object.as_object("object")) {
    if (name != key) members.emplace_back(name, member);
  }
  if (value) members.emplace_back(std::string(key), *value);
  return Json(std::move(members));
}

// The change is made where the text model's fields are.
Json changed_text_model(const Json& config, std::string_view key,
                        const std::optional<Json>& value) {
  const Json* const nested = config.find("text_config");
  if (nested == nullptr) return changed(config, key, value);
  return changed(config, "text_config", changed(*nested, key, value));
}

std::vector<Json> wrong_types(ConfigFieldType type) {
  std::vector<Json> wrong = {json_of("\"text\""), json_of("[1]"), json_of("{\"a\": 1}"),
                             json_of("true"), json_of("0.5")};
  if (type == ConfigFieldType::integer) return wrong;
  const std::map<ConfigFieldType, size_t> right = {{ConfigFieldType::number, 4},
                                                   {ConfigFieldType::flag, 3},
                                                   {ConfigFieldType::word, 0},
                                                   {ConfigFieldType::list, 1},
                                                   {ConfigFieldType::object, 2}};
  wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(right.at(type)));
  return wrong;
}

std::vector<Json> outside_the_range(const ConfigField& field) {
  if (field.type != ConfigFieldType::integer && field.type != ConfigFieldType::number) return {};
  std::vector<Json> outside = {json_of("-1"), json_of("-9223372036854775808"),
                               json_of("9007199254740992"), json_of("1e300"), json_of("-1e300")};
  if (field.min > 0) outside.push_back(json_of("0"));
  return outside;
}

// Values that may be in or out of range.
std::vector<std::optional<Json>> other_values() {
  return {std::nullopt,        Json(),        json_of("0"),  json_of("1"),       json_of("2"),
          json_of("16777216"), json_of("[]"), json_of("{}"), json_of("[[[1]]]"), json_of("\"\"")};
}

class FieldWalk {
 public:
  explicit FieldWalk(const std::string& model)
      : directory_(directory_of(model)),
        config_(parse_json(read_text_file(directory_ / "config.json", 1 << 20), "config.json")),
        ropes_(ropes_of(load(config_).rotary_dim)) {}

  int num_read() const { return num_read_; }
  bool found_problems() const { return found_problems_; }

  void walk(const ConfigField& field) {
    if (field.place != FieldPlace::rope) {
      walk(field, [&](const std::optional<Json>& value) {
        return changed_text_model(config_, field.name, value);
      });
    }
    if (field.place == FieldPlace::top) return;
    const Json plain = changed_text_model(config_, "rope_parameters", std::nullopt);
    for (const auto& rope : ropes_) {
      walk(field, [&](const std::optional<Json>& value) {
        return changed_text_model(plain, "rope_scaling", changed(rope.second, field.name, value));
      });
    }
  }

 private:
  template <class Change>
  void walk(const ConfigField& field, const Change& change) {
    size_t num_refused = 0;
    const std::vector<Json> wrong = wrong_types(field.type);
    for (const Json& value : wrong) {
      num_refused += loads(field, change(value), Message::names_the_field) ? 0u : 1u;
    }
    // A model that doesn't read the field takes any value.
    check(num_refused == 0 || num_refused == wrong.size(), field,
          fmt::format("refuses {} of {} wrong types", num_refused, wrong.size()));
    num_read_ += num_refused > 0 ? 1 : 0;
    for (const Json& value : outside_the_range(field)) {
      check(loads(field, change(value), Message::names_the_field) == (num_refused == 0), field,
            "takes " + to_json(value) + ", which is out of range");
    }
    for (const auto& value : other_values()) {
      loads(field, change(value), Message::names_any_field);
    }
  }

  // A value in range may contradict another field, which the message then names.
  enum class Message { names_the_field, names_any_field };

  // Whether it loads. Checks the message of an error.
  bool loads(const ConfigField& field, const Json& config, Message expected) {
    try {
      load(config);
      return true;
    } catch (const Error& error) {
      const std::string message = error.what();
      check(error.code() != ErrorCode::exhausted && error.code() != ErrorCode::internal, field,
            message);
      const bool is_named = expected == Message::names_any_field ? names_a_field(message)
                                                                 : names_field(message, field.name);
      check(is_named, field, "isn't named in: " + message);
    } catch (const std::bad_alloc&) {
      check(false, field, "out of memory with " + to_json(config));
    }
    return false;
  }

  // Reports to standard error, which the parent process shows.
  void check(bool is_right, const ConfigField& field, const std::string& problem) {
    if (is_right) return;
    found_problems_ = true;
    std::cerr << field.name << ": " << problem << '\n';
  }

  DecoderConfig load(const Json& json) {
    Memory memory;
    memory.set_memory_limit(kMaxBytes);
    ThreadPool threads(1);
    const auto files = open_checkpoint(directory_);
    ExpertCheckpoint experts(*files, memory, threads);
    WeightReader weights(experts);
    DecoderConfig config = read_decoder_config(json, weights, "config.json");
    const auto backend = make_cpu_backend(Isa::baseline, threads, memory);
    const LoadContext context{
        .weights = weights, .backend = *backend, .weight_dtype = DType::f32, .activations = {}};
    return Decoder(context, std::move(config)).config();
  }

  std::filesystem::path directory_;
  Json config_;
  std::map<std::string, Json> ropes_;
  int num_read_ = 0;
  bool found_problems_ = false;
};

// Bytes of data that the process has mapped, which RLIMIT_DATA bounds.
size_t mapped_data_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  for (int field = 0; field < 6; ++field) file >> pages;
  return pages * 4096;
}

// Sanitizers need more memory than is measured here; only the accounted limit applies there.
void limit_memory() {
  if (is_sanitized()) return;
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = mapped_data_bytes() + kMaxBytes;
  if (setrlimit(RLIMIT_DATA, &limit) != 0) std::exit(2);
}

int least_read() {
  if (is_full_scale()) return 25;
  return is_sanitized() ? 1 : 6;
}

class ConfigFields : public ::testing::TestWithParam<std::string> {};

// In a child process, which a crash or too much memory ends. At full scale all fields, else a third
// of them, or under a sanitizer a ninth, others for the next model.
TEST_P(ConfigFields, NoValueCrashesOrTakesMuchMemory) {
  const auto model = static_cast<size_t>(std::ranges::find(kModels, GetParam()) - kModels.begin());
  const auto all = config_fields();
  const auto fields = cases_to_run(std::vector<ConfigField>(all.begin(), all.end()), model, 9, 3);
  const auto walk_all = [&] {
    limit_memory();
    FieldWalk walk(GetParam());
    for (const ConfigField& field : fields) walk.walk(field);
    std::cerr << walk.num_read() << " of " << fields.size() << " fields are read\n";
    std::_Exit(walk.found_problems() || walk.num_read() < least_read() ? 1 : 0);
  };
  EXPECT_EXIT(walk_all(), ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(all, ConfigFields, ::testing::ValuesIn(kModels),
                         [](const auto& model) { return model.param; });

TEST(ConfigFieldTable, NamesAreUniqueAndRangesHoldTheirDefaults) {
  for (const ConfigField& field : config_fields()) {
    SCOPED_TRACE(std::string(field.name));
    EXPECT_EQ(std::ranges::count(config_fields(), field.name, &ConfigField::name), 1);
    const bool has_range =
        field.type == ConfigFieldType::integer || field.type == ConfigFieldType::number;
    EXPECT_EQ(field.min < field.max, has_range);
    if (!field.otherwise) continue;
    EXPECT_GE(*field.otherwise, field.min);
    EXPECT_LE(*field.otherwise, field.max);
  }
}

}  // namespace
}  // namespace paceline::testing
