#include "weights/mlx_quantization.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_cursor.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr int64_t kBits[] = {2, 3, 4, 5, 6, 8};
constexpr int64_t kGroupSizes[] = {32, 64, 128};
constexpr std::string_view kMode = "affine";
constexpr std::string_view kOtherModes[] = {"mxfp4", "mxfp8", "nvfp4"};

int64_t read_integer(const JsonCursor& object, std::string_view key,
                     std::optional<int64_t> otherwise) {
  const auto value = object.find(key);
  if (value) return value->integer();
  return otherwise ? *otherwise : object.at(key).integer();
}

// `otherwise` fills in members that an override omits. Nothing for another mode, whose format is in
// the shapes of its tensors (QuantisedCheckpoint).
std::optional<AffineFormat> read_format(const JsonCursor& object,
                                        const std::optional<AffineFormat>& otherwise) {
  if (const auto mode = object.find("mode"); mode && mode->string() != kMode) {
    if (std::ranges::find(kOtherModes, mode->string()) != std::end(kOtherModes)) return {};
    mode->fail(ErrorCode::unsupported,
               fmt::format("{} can't be read (affine, mxfp4, mxfp8 and nvfp4 can)",
                           quoted_name(mode->string())));
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
  return AffineFormat{.bits = static_cast<int>(bits), .group_size = group_size};
}

}  // namespace

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
      found.overrides_[name] = value.boolean() ? found.format_ : std::nullopt;
    }
  }
  return found;
}

std::optional<AffineFormat> MlxQuantization::format_of(std::string_view module) const {
  const auto at = overrides_.find(module);
  return at == overrides_.end() ? format_ : at->second;
}

}  // namespace paceline
