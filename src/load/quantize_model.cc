#include "load/quantize_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/json_cursor.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "base/model_files.h"
#include "base/new_directory.h"
#include "base/new_file.h"
#include "load/quantize_plan.h"
#include "weights/affine_quantizer.h"
#include "weights/checkpoint.h"
#include "weights/quoted_name.h"
#include "weights/safetensors_writer.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

bool is_copied(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name == "config.json" || name.ends_with(".index.json")) return false;
  if (name.starts_with("LICENSE") || name.starts_with("NOTICE")) return true;
  constexpr std::string_view kExtensions[] = {".json", ".jinja", ".model", ".txt"};
  return std::ranges::find(kExtensions, path.extension().string()) != std::end(kExtensions);
}

// Copies the files beside the weights: tokenizer, chat templates, generation defaults, licences;
// not weights, their index, config.json and programs. Throws the errors of NewFile and MappedFile.
void copy_model_files(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::directory_iterator at(from, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (!is_copied(at->path()) || !at->is_regular_file()) continue;
    NewFile copy(to / at->path().filename());
    copy.append(MappedFile(at->path()).bytes());
    copy.commit();
  }
  if (error) {
    throw Error(ErrorCode::not_found,
                fmt::format("{}: can't be listed: {}", from.string(), error.message()));
  }
}

// Writes the shards of a plan, tensor by tensor.
class ShardWriter {
 public:
  ShardWriter(const QuantizePlan& plan, const QuantizeOptions& options, Checkpoint& source,
              ThreadPool& threads)
      : plan_(plan), options_(options), source_(source), threads_(threads) {}

  void write_all(const fs::path& directory) {
    for (size_t shard = 0; shard < plan_.num_shards; ++shard) {
      SafetensorsWriter writer(directory / shard_name(shard, plan_.num_shards), "mlx");
      for (const QuantizeStep& step : plan_.steps) {
        if (step.shard == shard) add(step, writer);
      }
      for (const QuantizeStep& step : plan_.steps) {
        if (step.shard != shard) continue;
        write(step, writer);
        done_ += step.bytes_before();
        options_.progress(done_, plan_.sizes.bytes_before);
      }
      writer.finish();
    }
  }

 private:
  static void add(const QuantizeStep& step, SafetensorsWriter& writer) {
    const std::string_view dtype = safetensors_dtype_name(step.entry.dtype);
    if (!step.format) return writer.add(step.entry.name, dtype, step.entry.shape);
    const int64_t rows = step.entry.shape[0], length = step.entry.shape[1];
    const Extents per_group{rows, length / step.format->group_size};
    writer.add(step.entry.name, "U32", {rows, length * step.format->bits / 32});
    writer.add(step.module() + ".scales", dtype, per_group);
    writer.add(step.module() + ".biases", dtype, per_group);
  }

  void write(const QuantizeStep& step, SafetensorsWriter& writer) {
    const Tensor plain = source_.read(step.entry.name, step.entry.shape);
    if (!step.format) {
      writer.write(step.entry.name, plain.bytes());
    } else {
      const std::string where =
          fmt::format("{}: tensor {}", source_.origin(), quoted_name(step.entry.name));
      const OwnedAffineRows rows(plain, *step.format, where, memory_, threads_);
      writer.write(step.entry.name, rows.tensors().words.bytes());
      writer.write(step.module() + ".scales", rows.tensors().scales.bytes());
      writer.write(step.module() + ".biases", rows.tensors().biases.bytes());
    }
    source_.release(step.entry.name);
    memory_.clear_cache();
  }

  const QuantizePlan& plan_;
  const QuantizeOptions& options_;
  Checkpoint& source_;
  ThreadPool& threads_;
  Memory memory_;
  uint64_t done_ = 0;
};

void write_format(JsonWriter& json, AffineFormat format) {
  json.member("group_size", format.group_size).member("bits", format.bits);
  json.member("mode", std::string_view("affine"));
}

// Writes the fields of the source's config, and each module's quantisation under both keys of
// mlx_lm.
void write_config(const Json& config, const QuantizePlan& plan, const fs::path& path) {
  std::string quantization;
  JsonWriter fields(quantization);
  fields.begin_object();
  write_format(fields, plan.usual);
  for (const QuantizeStep& step : plan.steps) {
    if (!step.format || *step.format == plan.usual) continue;
    fields.key(step.module()).begin_object();
    write_format(fields, *step.format);
    fields.end_object();
  }
  fields.end_object();
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  for (const auto& [key, value] : *config.object()) {
    if (!value.is_null() || !key.starts_with("quantization")) json.key(key).tree(value);
  }
  json.key("quantization").raw(quantization).key("quantization_config").raw(quantization);
  json.end_object();
  write_new_file(path, text + "\n");
}

void write_index(const QuantizePlan& plan, const fs::path& path) {
  std::map<std::string, std::string> files;
  for (const QuantizeStep& step : plan.steps) {
    const std::string file = shard_name(step.shard, plan.num_shards);
    files[step.entry.name] = file;
    if (!step.format) continue;
    files[step.module() + ".scales"] = file;
    files[step.module() + ".biases"] = file;
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("metadata").begin_object();
  json.member("total_size", plan.sizes.bytes_after);
  json.member("total_parameters", plan.sizes.parameters).end_object();
  json.key("weight_map").begin_object();
  for (const auto& [name, file] : files) json.member(name, file);
  json.end_object().end_object();
  write_new_file(path, text + "\n");
}

}  // namespace

QuantizedSizes quantize_model(const QuantizeOptions& options, ThreadPool& threads) {
  const fs::path config_path = options.from / "config.json";
  const Json config =
      parse_json(read_text_file(config_path, kMaxConfigBytes), config_path.string());
  JsonCursor(config, config_path.string()).object();
  for (const std::string_view key : {"quantization", "quantization_config"}) {
    if (config.find_value(key) == nullptr) continue;
    throw Error(ErrorCode::invalid,
                fmt::format("{}: {} stands in it: the model is quantised already",
                            config_path.string(), key));
  }
  const auto source = open_checkpoint(options.from);
  const QuantizePlan plan = make_quantize_plan(*source, options);
  NewDirectory directory(options.to);
  ShardWriter(plan, options, *source, threads).write_all(directory.filling_path());
  if (plan.num_shards > 1) {
    write_index(plan, directory.filling_path() / "model.safetensors.index.json");
  }
  write_config(config, plan, directory.filling_path() / "config.json");
  copy_model_files(options.from, directory.filling_path());
  directory.commit();
  return plan.sizes;
}

}  // namespace paceline
