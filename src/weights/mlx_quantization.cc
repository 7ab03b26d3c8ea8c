#include "weights/mlx_quantization.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_cursor.h"
#include "weights/mxfp4_checkpoint.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr int64_t kBits[] = {2, 3, 4, 5, 6, 8};
constexpr int64_t kGroupSizes[] = {32, 64, 128};
constexpr std::string_view kMode = "affine";

int64_t read_integer(const JsonCursor& object, std::string_view key,
                     std::optional<int64_t> otherwise) {
  const auto value = object.find(key);
  if (value) return value->integer();
  return otherwise ? *otherwise : object.at(key).integer();
}

// `otherwise` fills in members that an override omits.
AffineFormat read_format(const JsonCursor& object, const std::optional<AffineFormat>& otherwise) {
  if (const auto mode = object.find("mode"); mode && mode->string() != kMode) {
    mode->fail(ErrorCode::unsupported,
               fmt::format("{} can't be read ({} can)", quoted_name(mode->string()), kMode));
  }
  const auto refuse = [&](std::string_view key, int64_t found, std::string_view expected) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: {}", object.name_of(key), found_instead(std::to_string(found), expected)));
  };
  const auto defaulted = [&](int64_t value) {
    return otherwise ? std::optional(value) : std::nullopt;
  };
  const AffineFormat fallback = otherwise.value_or(AffineFormat{});
  const int64_t bits = read_integer(object, "bits", defaulted(fallback.bits));
  if (!is_affine_bits(bits)) refuse("bits", bits, "2, 3, 4, 5, 6 or 8");
  const int64_t group_size = read_integer(object, "group_size", defaulted(fallback.group_size));
  if (!is_affine_group_size(group_size)) refuse("group_size", group_size, "32, 64 or 128");
  return {.bits = static_cast<int>(bits), .group_size = group_size};
}

[[noreturn]] void refuse_method(std::string_view where, std::string_view method) {
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: weights quantised by {} can't be read; use the original model "
                          "(--quantize q4 or q8 quantises it at load), a GGUF file of it, or one "
                          "that mlx_lm.convert quantised",
                          where, method));
}

// A file with the settings of a tool that quantises, beside config.json.
struct MethodFile {
  std::string_view name;
  std::string_view object;  // that names the method; empty: the file's root
  std::string_view key;
  std::string_view otherwise;  // the method of a file that names none; empty: none
};
constexpr MethodFile kMethodFiles[] = {
    {"quantize_config.json", "", "quant_method", "gptq"},
    {"quant_config.json", "", "quant_method", "awq"},
    {"hf_quant_config.json", "quantization", "quant_algo", ""},  // null: only the cache's
};

void check_method_file(const ModelFiles& files, const MethodFile& file) {
  const std::string where = files.where(file.name);
  const Json json = files.read_json(file.name);
  auto object = std::optional(JsonCursor(json, where));
  if (!file.object.empty()) object = object->find(file.object);
  const auto method = object ? object->find(file.key) : std::nullopt;
  if (!method && file.otherwise.empty()) return;
  refuse_method(method ? method->name() : where,
                quoted_name(method ? method->string() : file.otherwise));
}

}  // namespace

void check_quantization_method(const ModelFiles& files) {
  constexpr std::string_view kConfig = "config.json";
  if (files.contains(kConfig)) {
    const std::string where = files.where(kConfig);
    const Json config = files.read_json(kConfig);
    const JsonCursor root(config, where);
    const auto quantization = root.find("quantization_config");
    if (root.find("quantization") || has_mxfp4(config, where)) return;
    if (quantization) {
      if (const auto method = quantization->find("quant_method")) {
        refuse_method(method->name(), quoted_name(method->string()));
      }
      return;
    }
  }
  for (const MethodFile& file : kMethodFiles) {
    if (files.contains(file.name)) check_method_file(files, file);
  }
}

bool is_affine_bits(int64_t bits) { return std::ranges::find(kBits, bits) != std::end(kBits); }

bool is_affine_group_size(int64_t size) {
  return std::ranges::find(kGroupSizes, size) != std::end(kGroupSizes);
}

std::optional<MlxQuantization> MlxQuantization::find(const Json& config, std::string_view where) {
  const JsonCursor root(config, std::string(where));
  auto object = root.find("quantization");
  if (!object) {
    object = root.find("quantization_config");
    if (!object || object->find("quant_method")) return std::nullopt;
  }
  MlxQuantization found;
  found.format_ = read_format(*object, {});
  for (const auto& [module, value] : object->members()) {
    const std::string name(module);
    if (value.is_object()) {
      found.overrides_[name] = read_format(object->entry(module, value), found.format_);
    } else if (value.is_bool()) {
      found.overrides_[name] = value.boolean() ? std::optional(found.format_) : std::nullopt;
    }
  }
  return found;
}

std::optional<AffineFormat> MlxQuantization::format_of(std::string_view module) const {
  const auto at = overrides_.find(module);
  return at == overrides_.end() ? std::optional(format_) : at->second;
}

}  // namespace paceline
