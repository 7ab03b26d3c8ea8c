#include "load/fingerprint.h"

#include <fmt/format.h>

#include "base/mapped_file.h"
#include "base/option_names.h"
#include "base/version.h"
#include "kernels/backend.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFiles[] = {
    "config.json",           "generation_config.json",  "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "chat_template.jinja",   "chat_template.json",
};

std::string hex(Hash128 hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

// Nothing for a file that doesn't exist.
std::string digest_of(const ModelFiles& files, std::string_view name) {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  if (!files.contains(name)) return "-";
  const std::string text = files.read(name, kMaxBytes);
  return hex(siphash128_bytes(kPublicSipKey, std::as_bytes(std::span(text))));
}

// The same for a file outside the model.
std::string digest_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "-";
  return hex(siphash128_bytes(kPublicSipKey, MappedFile(path).bytes()));
}

// Equal settings have one name.
std::string_view activations_name(Activations activations) {
  return option_name(activations == Activations::automatic ? Activations::int8 : activations);
}

}  // namespace

std::string model_fingerprint(const LoadedModel& model, const ModelFiles& files,
                              const LoadOptions& options, Hash128 weights) {
  const std::string_view computes_on =
      model.machine->device ? model.backend->name() : isa_name(model.isa);
  std::string text =
      fmt::format("{} {} {}\n{} {} {} {} {} {}\n", kVersion, kGitDescribe, hex(weights),
                  computes_on, dtype_name(model.weight_dtype), option_name(options.quantize),
                  activations_name(options.activations), dtype_name(model.kv_dtype),
                  options.max_kv_size.value_or(0));
  for (const std::string_view name : kFiles) text += digest_of(files, name) + "\n";
  text += fmt::format("{} {}\n", options.chat_template, digest_of(options.chat_template));
  if (options.spec_accept == SpecAccept::rejection) text += "rejection\n";
  if (model.state_dtype != DType::f32) {
    text += fmt::format("states {}\n", dtype_name(model.state_dtype));
  }
  const Hash128 all = siphash128_bytes(kPublicSipKey, std::as_bytes(std::span(text)));
  return fmt::format("fp_{:016x}", all.low);
}

}  // namespace paceline
