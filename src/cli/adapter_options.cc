// Options of LoRA adapters.
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "cli/lora_source.h"
#include "cli/option_groups.h"

namespace paceline {
namespace {

using enum CommandId;

// In kChoosing each request names its adapter; in kWithOne the whole run has the same one.
constexpr CommandSet kChoosing = set_of({batch, serve});
constexpr CommandSet kWithOne = set_of({generate, chat, classify, decide, score, embed});

Error malformed(std::string_view option, const std::string& found, std::string_view expected) {
  return Error(ErrorCode::invalid,
               fmt::format("--{}: found {}, expected {}", option, found, expected));
}

// NAME=DIR:SCALE or DIR:SCALE; the directory may have colons.
LoraSource scaled_source(const std::string& text) {
  constexpr std::string_view kExpected = "NAME=DIR:SCALE or DIR:SCALE";
  const size_t colon = text.rfind(':');
  double scale = 0;
  const char* const begin = text.data() + (colon == text.npos ? 0 : colon + 1);
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(begin, end, scale);
  if (colon == text.npos || colon == 0 || read.ec != std::errc() || read.ptr != end) {
    throw malformed("lora-scaled", text, kExpected);
  }
  std::optional<LoraSource> source = read_lora_source(text.substr(0, colon));
  if (!source) throw malformed("lora-scaled", text, kExpected);
  source->scale = scale;
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
    if (value == nullptr) {
      throw malformed("lora-modules", text, fmt::format("a member {}", name));
    }
    return value->as_string(name);
  };
  return {.name = member("name"), .path = member("path")};
}

// The only adapter of a run, which its requests have.
void apply_one(Settings& settings, LoraSource source) {
  if (!settings.load.loras.empty()) {
    throw Error(ErrorCode::invalid, fmt::format("--lora: {} and {}, expected one adapter for a run",
                                                settings.load.loras.front().path, source.path));
  }
  source.name = kOnlyAdapter;
  settings.load.loras = {std::move(source)};
  settings.generate.lora = kOnlyAdapter;
}

constexpr OptionDef kAdapterOptions[] = {
    {.name = "lora",
     .placeholder = "DIR",
     .kind = OptionKind::texts,
     .default_text = "none",
     .help = "Run with the LoRA adapter in DIR (or NAME=DIR): of PEFT or mlx-lm, or a GGUF file.",
     .commands = kWithOne,
     .apply =
         [](Settings& s, const OptionValue& v) {
           for (const std::string& text : as_texts(v)) apply_one(s, plain_source(text));
         }},
    {.name = "lora-scaled",
     .placeholder = "DIR:SCALE",
     .kind = OptionKind::texts,
     .default_text = "none",
     .help = "Use a LoRA adapter (DIR or NAME=DIR), its scale multiplied by SCALE.",
     .commands = kWithOne,
     .apply =
         [](Settings& s, const OptionValue& v) {
           for (const std::string& text : as_texts(v)) apply_one(s, scaled_source(text));
         }},
    {.name = "lora",
     .placeholder = "NAME=DIR",
     .kind = OptionKind::texts,
     .default_text = "none",
     .help = "Load a LoRA adapter that requests choose as their model; without NAME= it is called "
             "as its directory; repeat for several.",
     .apply =
         [](Settings& s, const OptionValue& v) {
           for (const std::string& text : as_texts(v)) s.load.loras.push_back(plain_source(text));
         }},
    {.name = "lora-scaled",
     .placeholder = "NAME=DIR:SCALE",
     .kind = OptionKind::texts,
     .default_text = "none",
     .help = "Load a LoRA adapter, its scale multiplied by SCALE; repeat for several.",
     .apply =
         [](Settings& s, const OptionValue& v) {
           for (const std::string& text : as_texts(v)) s.load.loras.push_back(scaled_source(text));
         }},
    {.name = "lora-modules",
     .placeholder = "NAME=DIR...",
     .kind = OptionKind::texts,
     .default_text = "none",
     .help = "The same as --lora, under vLLM's name: one or several, each also as a JSON object "
             "with name and path.",
     .takes_list = true,
     .apply =
         [](Settings& s, const OptionValue& v) {
           for (const std::string& text : as_texts(v)) {
             s.load.loras.push_back(module_source(text));
           }
         }},
    {.name = "enable-lora",
     .help = "Make room for LoRA adapters also without --lora.",
     .to = kTo<&Settings::load, &LoadOptions::enable_lora>},
    {.name = "allow-runtime-lora",
     .help = "Let clients load and unload LoRA adapters that lie beneath --lora-directory; needs "
             "--api-key.",
     .group = OptionGroup::serving,
     .commands = set_of({serve}),
     .to = kTo<&Settings::allow_runtime_lora>},
    {.name = "lora-directory",
     .placeholder = "DIR",
     .default_text = "none",
     .help = "Directory of the LoRA adapters that clients may load.",
     .group = OptionGroup::serving,
     .commands = set_of({serve}),
     .needs = "allow-runtime-lora",
     .to = kTo<&Settings::lora_directory>},
    {.name = "max-cpu-loras",
     .placeholder = "N",
     .limits = {1, 65536},
     .default_text = "--max-loras",
     .help =
         "LoRA adapters loaded by clients to keep; beyond them the least recently used idle one "
         "is removed.",
     .group = OptionGroup::serving,
     .commands = set_of({serve}),
     .needs = "allow-runtime-lora",
     .to = kTo<&Settings::max_cpu_loras>},
    {.name = "max-lora-rank",
     .placeholder = "N",
     .limits = {1, 1024},
     .default_text = "1024",
     .help = "Largest rank of a LoRA adapter.",
     .needs = "lora lora-scaled lora-modules enable-lora allow-runtime-lora",
     .to = kTo<&Settings::load, &LoadOptions::max_lora_rank>},
    {.name = "max-loras",
     .placeholder = "N",
     .limits = {1, 65536},
     .default_text = "8",
     .help = "Different LoRA adapters computed at once; requests of others wait.",
     .group = OptionGroup::batching,
     .needs = "lora lora-scaled lora-modules enable-lora allow-runtime-lora",
     .to = kTo<&Settings::load, &LoadOptions::max_loras>},
};

}  // namespace

std::vector<OptionDef> adapter_options() {
  return section(OptionGroup::model, kChoosing, kAdapterOptions);
}

}  // namespace paceline
