#include "trainer/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "base/new_directory.h"
#include "base/new_file.h"
#include "kernels/backend.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kStateFile = "training_state.json";
constexpr std::string_view kOptimizerFile = "optimizer.safetensors";
constexpr size_t kKeptCheckpoints = 2;

// The parameters' values, then what the optimizer keeps, by the names of the file.
std::vector<Optimizer::State> saved_tensors(Trainer& trainer) {
  std::vector<Optimizer::State> all;
  for (const TrainedParameter* const one : trainer.trained().parameters()) {
    all.push_back({one->path() + ".value", one->value()});
  }
  for (Optimizer::State& state : trainer.optimizer().state()) all.push_back(std::move(state));
  return all;
}

void write_optimizer(Trainer& trainer, const fs::path& path) {
  const std::vector<Optimizer::State> all = saved_tensors(trainer);
  SafetensorsWriter writer(path);
  for (const Optimizer::State& one : all) {
    writer.add(one.name, safetensors_dtype_name(DType::f32), one.tensor.shape());
  }
  for (const Optimizer::State& one : all) writer.write(one.name, one.tensor.bytes());
  writer.finish();
}

void read_optimizer(const fs::path& path, Trainer& trainer) {
  const MappedFile file(path);
  const std::string where = path.string();
  const std::vector<SafetensorsTensor> found = parse_safetensors_header(file.bytes(), where);
  for (const Optimizer::State& one : saved_tensors(trainer)) {
    const auto at = std::lower_bound(found.begin(), found.end(), one.name,
                                     [](const SafetensorsTensor& tensor, const std::string& name) {
                                       return tensor.name < name;
                                     });
    if (at == found.end() || at->name != one.name) {
      throw Error(ErrorCode::corrupt, fmt::format("{}: {} is missing", where, one.name));
    }
    if (at->dtype != DType::f32 || at->shape != one.tensor.shape()) {
      throw Error(
          ErrorCode::corrupt,
          fmt::format("{}: {}: found {} {}, expected float32 {}", where, one.name,
                      dtype_name(at->dtype), to_string(at->shape), to_string(one.tensor.shape())));
    }
    std::memcpy(one.tensor.raw(), at->bytes.data(), at->bytes.size());
  }
}

std::string state_text(int64_t step, const RunIdentity& identity) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("step", step).key("run").begin_object();
  for (const auto& [name, value] : identity.members) {
    json.key(name).tree(parse_json(value, name));
  }
  json.end_object().end_object();
  return text + "\n";
}

void check_identity(const Json& state, const std::string& where, const RunIdentity& identity) {
  const JsonCursor run = JsonCursor(state, where).at("run");
  const auto refuse = [&where](const std::string& begun, std::string_view found) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: the run was begun {}, found {}: resume it with the same, or begin "
                            "another run",
                            where, begun, found));
  };
  for (const auto& [name, value] : identity.members) {
    const auto saved = run.find(name);
    if (!saved) refuse("without " + name, value);
    const std::string before = to_json(saved->node().json());
    if (before != to_json(parse_json(value, name))) {
      refuse(fmt::format("with {} {}", name, before), value);
    }
  }
  for (const auto& saved : run.members()) {
    const bool is_known = std::ranges::any_of(
        identity.members, [&](const auto& member) { return member.first == saved.key; });
    if (!is_known) {
      refuse(fmt::format("with {} {}", saved.key, to_json(saved.value.json())), "none");
    }
  }
}

}  // namespace

fs::path CheckpointFiles::path_of(int64_t step) const {
  return directory_ / fmt::format("{}{:06}", kPrefix, step);
}

std::vector<int64_t> CheckpointFiles::steps() const {
  std::vector<int64_t> steps;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    int64_t step = 0;
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, step);
    if (parsed.ptr == end && parsed.ec == std::errc() && path_of(step) == entry.path()) {
      steps.push_back(step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<int64_t> CheckpointFiles::last_step() const {
  const std::vector<int64_t> all = steps();
  if (all.empty()) return std::nullopt;
  return all.back();
}

void CheckpointFiles::save(Trainer& trainer, const RunIdentity& identity,
                           const ResultFiles& result) const {
  const int64_t step = trainer.num_steps();
  if (last_step() == step) return;
  NewDirectory out(path_of(step));
  result.write(out.filling_path());
  write_optimizer(trainer, out.filling_path() / kOptimizerFile);
  write_new_file(out.filling_path() / kStateFile, state_text(step, identity));
  out.commit();
  const std::vector<int64_t> all = steps();
  for (size_t i = 0; i + kKeptCheckpoints < all.size(); ++i) {
    std::error_code ignored;  // an old one that stays does no harm
    fs::remove_all(path_of(all[i]), ignored);
  }
}

void CheckpointFiles::load(int64_t step, Trainer& trainer, const RunIdentity& identity) const {
  const fs::path directory = path_of(step);
  const std::string where = (directory / kStateFile).string();
  constexpr size_t kMaxStateBytes = 1 << 20;
  const Json state = parse_json(read_text_file(directory / kStateFile, kMaxStateBytes), where);
  check_identity(state, where, identity);
  if (JsonCursor(state, where).at("step").integer() != step) {
    throw Error(ErrorCode::corrupt, fmt::format("{}: another step than its directory's", where));
  }
  read_optimizer(directory / kOptimizerFile, trainer);
  trainer.optimizer().set_num_steps(step);
  trainer.trained().pack(trainer.backend());
}

}  // namespace paceline
