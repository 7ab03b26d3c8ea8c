#include <fmt/format.h>

#include <set>

#include "adapters/adapter_files.h"
#include "adapters/mlx_directory.h"
#include "adapters/peft_directory.h"
#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/model_opening.h"
#include "cli/progress.h"
#include "cli/usage_error.h"
#include "load/model_adapter_base.h"

namespace paceline {
namespace {

// Of no known base without --model.
AdapterBase chosen_base(const Settings& settings) {
  if (settings.load.model.empty()) return {};
  return read_adapter_base(ModelSource(model_path(settings)));
}

std::string adapter_dtype_text(const LoraPair& pair) {
  const DType a = pair.a.view.dtype();
  const DType b = pair.b.view.dtype();
  return a == b ? std::string(dtype_name(a)) : fmt::format("{}, {}", dtype_name(a), dtype_name(b));
}

std::string digest_text(Hash128 digest) {
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

std::string adapter_text(const Settings& settings, AdapterFormat format, const Adapter& adapter) {
  std::set<int64_t> ranks;
  size_t width = 0;
  for (const LoraPair& pair : adapter.pairs()) {
    ranks.insert(pair.rank());
    width = std::max(width, pair.module.size());
  }
  std::string text = fmt::format("{}\n\n", settings.adapter);
  const auto row = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<8}{}\n", name, value);
  };
  row("format", std::string(adapter_format_name(format)));
  row("base", adapter.base_name().empty() ? "not named" : adapter.base_name());
  row("rank", fmt::format("{}", fmt::join(ranks, ", ")));
  row("size", bytes_text(adapter.size_bytes()));
  row("digest", digest_text(adapter.digest()));
  text += fmt::format("\n{} {}\n", adapter.pairs().size(),
                      plural_of("pair", std::ssize(adapter.pairs())));
  for (const LoraPair& pair : adapter.pairs()) {
    text += fmt::format("  {:<{}}  {:>16}  rank {:<5} scale {:<12} {:<9} {:>10}\n", pair.module,
                        width, fmt::format("{} x {}", pair.out(), pair.in()), pair.rank(),
                        pair.scale, adapter_dtype_text(pair), bytes_text(pair.size_bytes()));
  }
  return text;
}

std::string adapter_json(const Settings& settings, AdapterFormat format, const Adapter& adapter) {
  const std::string text = object_json([&](JsonWriter& json) {
    json.member("path", settings.adapter);
    json.member("format", adapter_format_name(format)).member("base_model", adapter.base_name());
    json.member("digest", digest_text(adapter.digest())).member("bytes", adapter.size_bytes());
    json.member("max_rank", adapter.max_rank()).key("pairs").begin_array();
    for (const LoraPair& pair : adapter.pairs()) {
      json.begin_object().member("module", pair.module).member("out", pair.out());
      json.member("in", pair.in()).member("rank", pair.rank()).member("alpha", pair.alpha);
      json.member("scale", pair.scale).member("dtype", adapter_dtype_text(pair));
      json.member("bytes", pair.size_bytes()).end_object();
    }
    json.end_array();
  });
  return text + "\n";
}

void write_adapter(const Settings& settings, const Adapter& adapter, const AdapterBase& base) {
  if (settings.adapter_format == "peft") {
    write_peft_adapter(adapter, base, settings.output);
  } else {
    write_mlx_adapter(adapter, base, settings.output);
  }
}

}  // namespace

int run_adapter(const Settings& settings, Session& session) {
  if (settings.adapter.empty()) throw UsageError("nothing to read: give the PATH of an adapter");
  if (settings.adapter_format.empty() != settings.output.empty()) {
    throw UsageError(settings.output.empty() ? "nowhere to write: give --output DIR"
                                             : "no format to write: give --to peft or --to mlx");
  }
  const AdapterBase base = chosen_base(settings);
  const AdapterFormat format = find_adapter_format(settings.adapter);
  Memory memory;
  const Adapter adapter = read_adapter(settings.adapter, base, memory);
  if (!settings.output.empty()) {
    write_adapter(settings, adapter, base);
    session.print_note("{}: {} pairs, {} (from {})", settings.output, adapter.pairs().size(),
                       bytes_text(adapter.size_bytes()), adapter_format_name(format));
    return 0;
  }
  session.out().write(settings.json ? adapter_json(settings, format, adapter)
                                    : adapter_text(settings, format, adapter));
  return 0;
}

}  // namespace paceline
