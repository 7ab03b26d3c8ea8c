#include "load/gguf_model.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "load/gguf_config.h"
#include "load/gguf_fields.h"
#include "load/gguf_mixers.h"
#include "load/gguf_tokenizer.h"
#include "models/gguf_architecture.h"
#include "weights/gguf_checkpoint.h"

namespace paceline {
namespace {

// Whether a tensor belongs to a layer behind the first `layers`.
bool is_behind(std::string_view name, int64_t layers) {
  constexpr std::string_view kLayer = "blk.";
  int64_t layer = 0;
  if (!name.starts_with(kLayer)) return false;
  const auto parsed =
      std::from_chars(name.data() + kLayer.size(), name.data() + name.size(), layer);
  return parsed.ec == std::errc() && layer >= layers;
}

// Of NVFP4: NAME.scale multiplies NAME.weight, and NAME.input_scale is for inputs that are rounded
// to 4 bits (llama.cpp's conversion/base.py).
constexpr std::string_view kWeightEnd = ".weight", kScaleEnd = ".scale",
                           kInputScaleEnd = ".input_scale";

std::string with_end(std::string_view name, std::string_view end, std::string_view other) {
  return std::string(name.substr(0, name.size() - end.size())).append(other);
}

bool is_nvfp4(const GgufFile& file, const std::string& name) {
  const GgufTensorInfo* const tensor = file.find_tensor(name);
  return tensor != nullptr && tensor->type == GgufType::nvfp4;
}

bool is_scale_of_nvfp4(const GgufFile& file, std::string_view name) {
  for (const std::string_view end : {kInputScaleEnd, kScaleEnd}) {
    if (name.ends_with(end)) return is_nvfp4(file, with_end(name, end, kWeightEnd));
  }
  return false;
}

// Empty where the matrix has none.
std::string multipliers_of(const GgufFile& file, const GgufTensorInfo& tensor) {
  if (tensor.type != GgufType::nvfp4 || !tensor.name.ends_with(kWeightEnd)) return {};
  std::string name = with_end(tensor.name, kWeightEnd, kScaleEnd);
  return file.find_tensor(name) == nullptr ? std::string() : name;
}

// The numbers of each layer that the metadata holds.
void add_layer_numbers(const GgufFields& fields, int64_t num_layers,
                       std::vector<GgufTensorName>& names) {
  for (const GgufNamePair& pair : fields.architecture().layer_numbers) {
    const std::string key = fields.key(pair.theirs);
    std::vector<float> numbers;
    if (fields.metadata().is_array(key)) {
      numbers = fields.metadata().numbers(key).value();
    } else if (const auto same = fields.number(pair.theirs)) {
      numbers.assign(static_cast<size_t>(num_layers), static_cast<float>(*same));
    }
    if (std::ssize(numbers) < num_layers) {
      fields.corrupt(pair.theirs,
                     fmt::format("{} numbers for {} layers", numbers.size(), num_layers));
    }
    std::string_view part = pair.ours;
    const bool has_no_dimension = part.ends_with('?');
    if (has_no_dimension) part.remove_suffix(1);
    for (int64_t layer = 0; layer < num_layers; ++layer) {
      const float number = numbers[static_cast<size_t>(layer)];
      if (!std::isfinite(number)) fields.corrupt(pair.theirs, "expected finite numbers");
      names.push_back({.name = fmt::format("model.layers.{}.{}", layer, part),
                       .file_name = {},
                       .number = number,
                       .has_no_dimension = has_no_dimension});
    }
  }
}

}  // namespace

ModelFiles gguf_model_files(std::shared_ptr<const GgufFile> file) {
  ModelFiles::Makers makers;
  makers["config.json"] = [file] { return to_json(gguf_config(*file)); };
  makers["generation_config.json"] = [file] {
    return to_json(gguf_generation_config(file->metadata()));
  };
  if (const auto pooling = gguf_pooling(file->metadata())) {
    makers["modules.json"] = [] {
      return std::string(R"([{"path": "1_Pooling", "type": "Pooling"},)"
                         R"( {"path": "2_Normalize", "type": "Normalize"}])");
    };
    makers["1_Pooling/config.json"] = [mode = *pooling] {
      return R"({"pooling_mode": ")" + mode + R"("})";
    };
  }
  if (has_gguf_tokenizer(file->metadata())) {
    makers["tokenizer.json"] = [file] { return gguf_tokenizer_json(file->metadata()); };
    makers["tokenizer_config.json"] = [file] {
      return gguf_tokenizer_config_json(file->metadata());
    };
  }
  return {file->path(), std::move(makers)};
}

std::optional<GgufTensorName> gguf_tensor_name(const GgufArchitecture& architecture,
                                               const GgufSizes& sizes, std::string_view file_name) {
  auto name = checkpoint_name(architecture, file_name);
  if (!name) return std::nullopt;
  int64_t interleaved = 0;
  const auto is = [&](std::string_view part) { return name->find(part) != name->npos; };
  if (architecture.interleaved_rotary) {
    if (is(".self_attn.q_proj.") || is(".mixer.q_proj.")) interleaved = sizes.heads.query;
    if (is(".self_attn.k_proj.") || is(".mixer.k_proj.")) interleaved = sizes.heads.key;
  }
  const bool is_row = name->ends_with(".shared_expert_gate.weight");
  GgufTensorName tensor{std::move(*name), std::string(file_name), interleaved, is_row};
  set_state_shape(architecture.mixers, tensor);
  if (sizes.delta_net) set_delta_net_order(*sizes.delta_net, tensor);
  return tensor;
}

std::unique_ptr<Checkpoint> open_gguf_weights(std::shared_ptr<const GgufFile> file,
                                              Memory& memory) {
  const GgufArchitecture& architecture = find_gguf_architecture(file->metadata());
  const GgufFields fields(file->metadata(), architecture);
  GgufSizes sizes;
  if (architecture.interleaved_rotary) sizes.heads = gguf_heads(*file);
  if (architecture.value_heads_in_turns) sizes.delta_net = gguf_delta_net(fields);
  const bool drops_further =
      architecture.mixers == GgufMixers::delta_nets || architecture.mixers == GgufMixers::alone;
  const int64_t num_layers = drops_further ? num_gguf_layers(*file) : 0;
  std::vector<GgufTensorName> names;
  for (const GgufTensorInfo& tensor : file->tensors()) {
    if (drops_further && is_behind(tensor.name, num_layers)) continue;
    auto name = gguf_tensor_name(architecture, sizes, tensor.name);
    if (name && name->name == tensor.name && is_scale_of_nvfp4(*file, tensor.name)) continue;
    if (name) {
      name->multipliers = multipliers_of(*file, tensor);
      names.push_back(std::move(*name));
    }
  }
  if (!architecture.layer_numbers.empty()) {
    add_layer_numbers(fields, num_gguf_layers(*file), names);
  }
  return make_gguf_checkpoint(std::move(file), std::move(names), memory);
}

}  // namespace paceline
