#include "adapters/adapter_files.h"

#include <fmt/format.h>

#include "adapters/gguf_adapter.h"
#include "adapters/mlx_directory.h"
#include "adapters/peft_directory.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

bool has_file(const fs::path& directory, std::string_view name) {
  std::error_code ignored;
  return fs::exists(directory / name, ignored);
}

}  // namespace

std::string_view adapter_format_name(AdapterFormat format) {
  switch (format) {
    case AdapterFormat::peft:
      return "PEFT";
    case AdapterFormat::mlx:
      return "mlx";
    case AdapterFormat::gguf:
      return "GGUF";
  }
  return "";
}

AdapterFormat find_adapter_format(const fs::path& path) {
  constexpr std::string_view kPickle = "adapter_model.bin";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw Error(ErrorCode::not_found, fmt::format("{}: no such file or directory", path.string()));
  }
  if (!fs::is_directory(path, ignored)) {
    if (path.extension() == ".safetensors") {
      throw Error(ErrorCode::invalid,
                  fmt::format("{}: a file; name the adapter's directory, which has {} too",
                              path.string(), "adapter_config.json"));
    }
    return AdapterFormat::gguf;
  }
  const bool peft = has_file(path, kPeftWeightsFile);
  const bool mlx = has_file(path, kMlxWeightsFile);
  if (peft && mlx) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: has {} (PEFT) and {} (mlx-lm), expected one of them",
                            path.string(), kPeftWeightsFile, kMlxWeightsFile));
  }
  if (peft) return AdapterFormat::peft;
  if (mlx) return AdapterFormat::mlx;
  if (has_file(path, kPickle)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: has {}, which isn't read because loading it can run programs; "
                            "save the adapter with safe_serialization=True",
                            path.string(), kPickle));
  }
  throw Error(ErrorCode::not_found,
              fmt::format("{}: no adapter; expected {} (PEFT), {} (mlx-lm) or a GGUF file",
                          path.string(), kPeftWeightsFile, kMlxWeightsFile));
}

Adapter read_adapter(const fs::path& path, const AdapterBase& base, Memory& memory,
                     const AdapterLimits& limits) {
  const AdapterFormat format = find_adapter_format(path);
  if (format != AdapterFormat::gguf && !base.needs_gguf.empty()) {
    throw Error(ErrorCode::unsupported, fmt::format("{}: {}", path.string(), base.needs_gguf));
  }
  switch (format) {
    case AdapterFormat::peft:
      return read_peft_adapter(path, base, limits, memory);
    case AdapterFormat::mlx:
      return read_mlx_adapter(path, base, limits, memory);
    case AdapterFormat::gguf:
      break;
  }
  return read_gguf_adapter(path, base, limits, memory);
}

}  // namespace paceline
