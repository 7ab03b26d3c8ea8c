#include "weights/mlx_quantization.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr int64_t kBits[] = {2, 3, 4, 5, 6, 8};
constexpr int64_t kGroupSizes[] = {32, 64, 128};
constexpr std::string_view kMode = "affine";

int64_t read_integer(const Json& object, std::string_view key, std::optional<int64_t> otherwise,
                     const std::string& path) {
  const Json* const value = object.find_value(key);
  if (value != nullptr) return value->as_int(fmt::format("{}.{}", path, key));
  if (otherwise) return *otherwise;
  throw Error(ErrorCode::invalid, fmt::format("{}: the field \"{}\" is missing", path, key));
}

// `otherwise`: what an override leaves out.
AffineFormat read_format(const Json& object, const std::optional<AffineFormat>& otherwise,
                         const std::string& path) {
  if (const Json* const mode = object.find_value("mode")) {
    const std::string& name = mode->as_string(path + ".mode");
    if (name != kMode) {
      throw Error(ErrorCode::unsupported, fmt::format("{}.mode: {} can't be read ({} can)", path,
                                                      quoted_name(name), kMode));
    }
  }
  const auto defaulted = [&](int64_t value) {
    return otherwise ? std::optional(value) : std::nullopt;
  };
  const AffineFormat fallback = otherwise.value_or(AffineFormat{});
  const int64_t bits = read_integer(object, "bits", defaulted(fallback.bits), path);
  if (!is_affine_bits(bits)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}.bits: {}, expected 2, 3, 4, 5, 6 or 8", path, bits));
  }
  const int64_t group_size =
      read_integer(object, "group_size", defaulted(fallback.group_size), path);
  if (!is_affine_group_size(group_size)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}.group_size: {}, expected 32, 64 or 128", path, group_size));
  }
  return {.bits = static_cast<int>(bits), .group_size = group_size};
}

}  // namespace

void check_quantization_method(const Json& config, std::string_view where) {
  const Json* const quantization = config.find_value("quantization_config");
  if (quantization == nullptr || config.find_value("quantization") != nullptr) return;
  const Json* const method = quantization->find_value("quant_method");
  if (method == nullptr) return;
  const std::string path = fmt::format("{}: quantization_config.quant_method", where);
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: weights quantised by {} can't be read; use the original model "
                          "(--quantize q4 or q8 quantises it at load), a GGUF file of it, or one "
                          "that mlx_lm.convert quantised",
                          path, quoted_name(method->as_string(path))));
}

bool is_affine_bits(int64_t bits) { return std::ranges::find(kBits, bits) != std::end(kBits); }

bool is_affine_group_size(int64_t size) {
  return std::ranges::find(kGroupSizes, size) != std::end(kGroupSizes);
}

std::optional<MlxQuantization> MlxQuantization::find(const Json& config, std::string_view where) {
  std::string_view key = "quantization";
  const Json* object = config.find_value(key);
  if (object == nullptr) {
    key = "quantization_config";
    object = config.find_value(key);
    if (object == nullptr || object->find_value("quant_method") != nullptr) return std::nullopt;
  }
  const std::string path = fmt::format("{}: {}", where, key);
  MlxQuantization found;
  const Json::Object& members = object->as_object(path);
  found.format_ = read_format(*object, {}, path);
  for (const auto& [module, value] : members) {
    if (value.is_object()) {
      found.overrides_[module] = read_format(value, found.format_, path + "." + module);
    } else if (value.is_bool()) {
      const bool quantised = value.as_bool(path);
      found.overrides_[module] = quantised ? std::optional(found.format_) : std::nullopt;
    }
  }
  return found;
}

std::optional<AffineFormat> MlxQuantization::format_of(std::string_view module) const {
  const auto at = overrides_.find(module);
  return at == overrides_.end() ? std::optional(format_) : at->second;
}

}  // namespace paceline
