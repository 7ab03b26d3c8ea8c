#include "weights/published_quantisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "base/json_cursor.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr std::string_view kConfigName = "config.json";

[[noreturn]] void refuse_as(std::string_view where, std::string_view method) {
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: weights quantised by {} can't be read; use the original model "
                          "(--quantize q4 or q8 quantises it at load), a GGUF file of it, or one "
                          "that mlx_lm.convert quantised",
                          where, quoted_name(method)));
}

// The dtype of the model, which composite configs have in the text model's.
DType model_dtype(const JsonCursor& config) {
  std::vector<JsonCursor> objects = {config};
  for (const std::string_view key : {"text_config", "llm_config"}) {
    const auto inner = config.find(key);
    if (inner && inner->is_object()) objects.push_back(*inner);
  }
  for (const JsonCursor& object : objects) {
    for (const std::string_view key : {"dtype", "torch_dtype"}) {
      const auto field = object.find(key);
      if (!field || !field->is_string()) continue;
      const auto dtype = parse_dtype(field->string());
      if (dtype && is_float(*dtype)) return *dtype;
    }
  }
  return DType::bf16;
}

void add_bits(const JsonCursor& object, PublishedQuantisation& found) {
  for (const std::string_view key : {"bits", "num_bits", "w_bit"}) {
    const auto field = object.find(key);
    if (field && field->is_number()) found.bits.push_back(field->integer());
  }
}

void read_block(const JsonCursor& object, std::string_view key, PublishedQuantisation& found) {
  const auto field = object.find(key);
  if (!field || !field->is_array()) return;
  if (field->num_items() != 2) field->mismatch("two sizes");
  const std::array sizes = {field->item(0).integer(), field->item(1).integer()};
  for (const int64_t size : sizes) {
    if (size < 1) field->mismatch("sizes of at least 1");
  }
  found.block = Extents{sizes[0], sizes[1]};
}

// Of compressed-tensors: {"group_0": {"weights": {"num_bits": 4, "block_structure": ...}}, ...}.
void read_config_groups(const JsonCursor& object, PublishedQuantisation& found) {
  const auto groups = object.find("config_groups");
  if (!groups || !groups->is_object()) return;
  for (const auto& [name, group] : groups->members()) {
    const JsonCursor cursor = groups->entry(name, group);
    const auto weights = cursor.is_object() ? cursor.find("weights") : std::nullopt;
    if (!weights || !weights->is_object()) continue;
    add_bits(*weights, found);
    read_block(*weights, "block_structure", found);
  }
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> known) {
  return std::ranges::find(known, text) != known.end();
}

bool is_autoround(std::string_view method) {
  return is_one_of(method, {"auto-round", "intel/auto-round", "autoround"});
}

std::string text_of(const JsonCursor& object, std::string_view key) {
  const auto field = object.find(key);
  return field && field->is_string() ? std::string(field->string()) : std::string();
}

// AutoRound writes the formats of other tools, and one of its own: GPTQ's, with zero points as they
// are (auto_round/inference/backend.py; without a name it is GPTQ's).
void read_autoround_packing(const JsonCursor& object, PublishedQuantisation& found) {
  std::string packing = text_of(object, "packing_format");
  if (packing.empty()) packing = text_of(object, "backend");
  const auto has = [&](std::string_view part) { return packing.find(part) != std::string::npos; };
  if (has("mlx") || has("e5m3")) {
    object.fail(ErrorCode::unsupported,
                fmt::format("weights packed as {} can't be read (auto_round, auto_gptq, auto_awq "
                            "and llm_compressor can)",
                            quoted_name(packing)));
  }
  found.words_are_awq = has("awq");
  const bool is_named = !packing.empty() && packing != "auto";
  if (is_named && (!has("gptq") || has("gptqmodel"))) found.gptq_zero_shift = 0;
}

// Which way words are packed.
void read_packing(const JsonCursor& object, PublishedQuantisation& found) {
  if (is_autoround(found.method)) return read_autoround_packing(object, found);
  found.words_are_awq = found.method == "awq";
  const std::string format = text_of(object, "checkpoint_format");
  if (format == "gptq_v2") found.gptq_zero_shift = 0;
  // Layouts of kernels.
  std::string kernel = found.words_are_awq ? text_of(object, "version") : format;
  for (char& letter : kernel) letter = static_cast<char>(std::tolower(letter));
  if (found.words_are_awq && text_of(object, "backend") == "llm-awq") kernel = "llm-awq";
  if (kernel.empty() || is_one_of(kernel, {"gemm", "gptq", "gptq_v2"})) return;
  if (!is_one_of(found.method, {"gptq", "awq"})) return;
  object.fail(ErrorCode::unsupported,
              fmt::format("weights packed for {} can't be read (gptq, gptq_v2 and gemm can)",
                          quoted_name(kernel)));
}

// Matrices that rotate inputs while a model runs (QuIP, SpinQuant).
void check_transforms(const JsonCursor& object) {
  const auto transforms = object.find("transform_config");
  if (!transforms || !transforms->is_object()) return;
  const auto groups = transforms->find("config_groups");
  if (!groups || !groups->is_object() || groups->members().empty()) return;
  transforms->fail(ErrorCode::unsupported, "transforms of inputs can't be computed");
}

PublishedQuantisation read_object(const JsonCursor& object, std::string_view method,
                                  const std::string& where) {
  if (!is_autoround(method) &&
      !is_one_of(method,
                 {"fp8", "fbgemm_fp8", "compressed-tensors", "compressed_tensors", "gptq", "awq",
                  "bitsandbytes", "hqq", "modelopt", "modelopt_fp4", "mlx", "torchao"})) {
    refuse_as(where, method);
  }
  PublishedQuantisation found{.method = std::string(method)};
  add_bits(object, found);
  read_block(object, "weight_block_size", found);
  read_config_groups(object, found);
  read_packing(object, found);
  check_transforms(object);
  return found;
}

// A file with the settings of a tool that quantises, beside config.json.
struct ToolFile {
  std::string_view name;
  std::string_view object;  // that names the method; empty: the file's root
  std::string_view key;
  std::string_view otherwise;  // the method of a file that names none; empty: none
};
constexpr ToolFile kToolFiles[] = {
    {"quantize_config.json", "", "quant_method", "gptq"},
    {"quant_config.json", "", "quant_method", "awq"},
    {"hf_quant_config.json", "quantization", "quant_algo", ""},  // null: only the cache's
};

// What ModelOpt's algorithms are read as; empty: they aren't read.
std::string_view method_of(std::string_view name) {
  if (is_one_of(name, {"FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "NVFP4_AWQ",
                       "W4A16_NVFP4", "MXFP8", "MIXED_PRECISION"})) {
    return "modelopt";
  }
  return name;
}

std::optional<PublishedQuantisation> read_tool_file(const ModelFiles& files, const ToolFile& file) {
  const std::string where = files.where(file.name);
  const Json json = files.read_json(file.name);
  auto object = std::optional(JsonCursor(json, where));
  if (!file.object.empty()) object = object->find(file.object);
  const auto method = object ? object->find(file.key) : std::nullopt;
  if (!method && file.otherwise.empty()) return std::nullopt;
  const std::string name(method ? method->string() : file.otherwise);
  return read_object(*object, method_of(name), method ? method->name() : where);
}

// MLX's modes besides affine; their tensors have scales of uint8.
bool has_other_mode(const JsonCursor& object) {
  const auto is_other = [](const JsonCursor& settings) {
    const auto mode = settings.find("mode");
    return mode && mode->string() != "affine";
  };
  if (is_other(object)) return true;
  return std::ranges::any_of(object.members(), [&](const JsonCursor::Member& member) {
    return member.value.is_object() && is_other(object.entry(member.key, member.value));
  });
}

std::optional<PublishedQuantisation> read_config(const JsonCursor& root, bool& decides) {
  auto mlx = root.find("quantization");
  const auto object = root.find("quantization_config");
  decides = mlx || object;
  const auto method = object && !mlx ? object->find("quant_method") : std::nullopt;
  if (method) {
    if (method->string() == "mxfp4") return std::nullopt;  // Mxfp4Checkpoint
    return read_object(*object, method->string(), method->name());
  }
  if (!mlx) mlx = object;
  if (!mlx || !mlx->is_object() || !has_other_mode(*mlx)) return std::nullopt;
  return PublishedQuantisation{.method = "mlx"};
}

}  // namespace

std::string PublishedQuantisation::summary() const {
  return fmt::format("{} bits [{}] block {} awq {} shift {} {} float8 {}", method,
                     fmt::join(bits, ","), to_string(block.value_or(Extents())), words_are_awq,
                     gptq_zero_shift, dtype_name(dtype), keeps_float8 ? "kept" : "expanded");
}

std::optional<PublishedQuantisation> PublishedQuantisation::find(const ModelFiles& files) {
  std::optional<PublishedQuantisation> found;
  Json config(Json::Object{});
  const std::string where = files.where(kConfigName);
  bool decides = false;
  if (files.contains(kConfigName)) {
    config = files.read_json(kConfigName);
    found = read_config(JsonCursor(config, where), decides);
  }
  for (const ToolFile& file : kToolFiles) {
    if (!decides && !found && files.contains(file.name)) found = read_tool_file(files, file);
  }
  if (found) found->dtype = model_dtype(JsonCursor(config, where));
  return found;
}

}  // namespace paceline
