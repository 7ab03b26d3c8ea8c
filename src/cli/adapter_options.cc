// Options of LoRA adapters.
#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "cli/lora_source.h"
#include "cli/option_groups.h"
#include "cli/words.h"

namespace paceline {
namespace {

using enum CommandId;

// In kChoosing each request names its adapter; in kWithOne the whole run has the same one.
constexpr CommandSet kChoosing = set_of({batch, serve});
constexpr CommandSet kWithOne = set_of({generate, chat, classify, decide, score, embed});

Error malformed(std::string_view option, const std::string& found, std::string_view expected) {
  return error_of(ErrorCode::invalid, "--{}: found {}, expected {}", option, found, expected);
}

// NAME=DIR:SCALE or DIR:SCALE; the directory may have colons.
LoraSource scaled_source(const std::string& text) {
  constexpr std::string_view kExpected = "NAME=DIR:SCALE or DIR:SCALE";
  const size_t colon = text.rfind(':');
  const bool has_path = colon != text.npos && colon > 0;
  const auto scale = parse_number<double>(std::string_view(text).substr(has_path ? colon + 1 : 0));
  if (!has_path || !scale) throw malformed("lora-scaled", text, kExpected);
  std::optional<LoraSource> source = read_lora_source(text.substr(0, colon));
  if (!source) throw malformed("lora-scaled", text, kExpected);
  source->scale = *scale;
  return *std::move(source);
}

LoraSource plain_source(const std::string& text) {
  std::optional<LoraSource> source = read_lora_source(text);
  if (!source) throw malformed("lora", text, "NAME=DIR or DIR");
  return *std::move(source);
}

// NAME=DIR, or vLLM's {"name": NAME, "path": DIR, "base_model_name": ...}.
LoraSource module_source(const std::string& text) {
  if (!text.starts_with('{')) {
    std::optional<LoraSource> source = read_lora_source(text);
    if (!source || text.find('=') == text.npos) throw malformed("lora-modules", text, "NAME=DIR");
    return *std::move(source);
  }
  const Json json = parse_json(text, "--lora-modules");
  const auto member = [&](std::string_view name) {
    const Json* const value = json.find_value(name);
    if (value == nullptr) throw malformed("lora-modules", text, fmt::format("a member {}", name));
    return value->as_string(name);
  };
  return {.name = member("name"), .path = member("path")};
}

template <LoraSource (*source_of)(const std::string&)>
void add_adapters(Settings& settings, const OptionValue& value) {
  for (const std::string& text : as_texts(value)) settings.load.loras.push_back(source_of(text));
}

// The only adapter of a run, which its requests have.
template <LoraSource (*source_of)(const std::string&)>
void use_adapter(Settings& settings, const OptionValue& value) {
  add_adapters<source_of>(settings, value);
  std::vector<LoraSource>& loras = settings.load.loras;
  if (loras.size() > 1) {
    throw error_of(ErrorCode::invalid, "--lora: {} and {}, expected one adapter for a run",
                   loras[0].path, loras[1].path);
  }
  if (loras.empty()) return;
  loras[0].name = kOnlyAdapter;
  settings.generate.lora = kOnlyAdapter;
}

constexpr OptionDef kAdapterOptions[] = {
    option("lora", {OptionKind::texts, use_adapter<plain_source>},
           "Run with the LoRA adapter in DIR (or NAME=DIR): of PEFT or mlx-lm, or a GGUF file.",
           {.placeholder = "DIR", .default_text = "none", .commands = kWithOne}),
    option("lora-scaled", {OptionKind::texts, use_adapter<scaled_source>},
           "Use a LoRA adapter (DIR or NAME=DIR), its scale multiplied by SCALE.",
           {.placeholder = "DIR:SCALE", .default_text = "none", .commands = kWithOne}),
    option("lora", {OptionKind::texts, add_adapters<plain_source>},
           "Load a LoRA adapter that requests choose as their model; without NAME= it is called as "
           "its directory; repeat for several.",
           {.placeholder = "NAME=DIR", .default_text = "none"}),
    option("lora-scaled", {OptionKind::texts, add_adapters<scaled_source>},
           "Load a LoRA adapter, its scale multiplied by SCALE; repeat for several.",
           {.placeholder = "NAME=DIR:SCALE", .default_text = "none"}),
    option("lora-modules", {OptionKind::texts, add_adapters<module_source>},
           "The same as --lora, under vLLM's name: one or several, each also as a JSON object with "
           "name and path.",
           {.placeholder = "NAME=DIR...", .default_text = "none", .takes_list = true}),
    option("enable-lora", kTo<&Settings::load, &LoadOptions::enable_lora>,
           "Make room for LoRA adapters also without --lora."),
    option("allow-runtime-lora", kTo<&Settings::allow_runtime_lora>,
           "Let clients load and unload LoRA adapters that lie beneath --lora-directory; needs "
           "--api-key.",
           {.group = OptionGroup::serving, .commands = set_of({serve})}),
    option("lora-directory", kTo<&Settings::lora_directory>,
           "Directory of the LoRA adapters that clients may load.",
           {.placeholder = "DIR",
            .default_text = "none",
            .commands = set_of({serve}),
            .needs = "allow-runtime-lora"}),
    option("max-cpu-loras", kTo<&Settings::max_cpu_loras>,
           "LoRA adapters loaded by clients to keep; beyond them the least recently used idle one "
           "is removed.",
           {.limits = {1, 65536},
            .default_text = "--max-loras",
            .commands = set_of({serve}),
            .needs = "allow-runtime-lora"}),
    option("max-lora-rank", kTo<&Settings::load, &LoadOptions::max_lora_rank>,
           "Largest rank of a LoRA adapter.",
           {.limits = {1, 1024},
            .group = OptionGroup::model,
            .needs = "lora lora-scaled lora-modules enable-lora allow-runtime-lora"}),
    option("max-loras", kTo<&Settings::load, &LoadOptions::max_loras>,
           "Different LoRA adapters computed at once; requests of others wait.",
           {.limits = {1, 65536},
            .group = OptionGroup::batching,
            .needs = "lora lora-scaled lora-modules enable-lora allow-runtime-lora"}),
};

}  // namespace

std::vector<OptionDef> adapter_options() {
  return section(OptionGroup::model, kChoosing, kAdapterOptions);
}

}  // namespace paceline
