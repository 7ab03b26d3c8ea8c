// Options of the model, how it runs, and the memory it takes.
#include "cli/lora_source.h"
#include "cli/option_groups.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using enum CommandId;

// An empty name is that of an unset variable in a script: not the bundled model.
std::string model_named(const std::string& name) {
  if (!name.empty()) return name;
  throw Error(
      ErrorCode::invalid,
      "--model: empty, expected a directory, a GGUF file or OWNER/NAME; leave the option out "
      "for the bundled model");
}

// Commands that work on a model alone, and take it without its flag.
constexpr CommandSet kModelIsBare = set_of({inspect, bench, quantize, convert});

constexpr OptionDef kModelOptions[] = {
    // The model and how it runs.
    {.name = "model",
     .aliases = "-m",
     .placeholder = "MODEL",
     .kind = OptionKind::text,
     .default_text = "the small model that comes with Paceline",
     .help = "Model directory, GGUF file, or OWNER/NAME from the local Hugging Face cache.",
     .commands = kEveryCommand & ~set_of({adapter, trace, list, serve}),
     .bare_in = kModelIsBare,
     .apply = [](Settings& s, const OptionValue& v) { s.load.model = model_named(as_text(v)); }},
    {.default_text = "the model that the trace names",
     .help = "Model on which --replay runs the requests.",
     .commands = set_of({trace}),
     .needs = "replay"},
    {.default_text = "none: nothing is compared",
     .help = "Base model that the adapter must fit.",
     .commands = set_of({adapter})},
    {.name = "model",
     .aliases = "-m",
     .placeholder = "MODEL",
     .kind = OptionKind::texts,
     .default_text = "the small model that comes with Paceline",
     .help = "Directory, GGUF file, OWNER/NAME, or NAME=one of them; repeat for several.",
     .commands = set_of({serve}),
     .bare_in = set_of({serve}),
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.models = std::get<std::vector<std::string>>(v);
           for (const std::string& model : s.models) model_named(model);
           const auto first = read_lora_source(s.models.front());  // NAME=MODEL, too
           s.load.model = first ? first->path : s.models.front();
         }},
    {.name = "models-dir",
     .placeholder = "DIR",
     .help = "Directory of further models to serve, folders and GGUF files by their names; each is "
             "loaded by its first request.",
     .commands = set_of({serve}),
     .to = kTo<&Settings::models_directory>},
    {.name = "unknown-model",
     .placeholder = "WHAT",
     .choices = "refuse first",
     .default_text = "refuse",
     .help = "What a request gets that names none of the models: refuse (404), or the first model.",
     .commands = set_of({serve}),
     .to = kTo<&Settings::unknown_model>},
    {.name = "sleep-idle-seconds",
     .placeholder = "S",
     .limits = {0, 31536000},
     .default_text = "0, never",
     .help = "Seconds without requests after which a model is unloaded; the next request loads it.",
     .commands = set_of({serve}),
     .to = kTo<&Settings::sleep_idle_s>},
    {.name = "load-format",
     .placeholder = "FORMAT",
     .kind = OptionKind::choice,
     .choices = "auto safetensors gguf dummy",
     .default_text = "auto",
     .help =
         "Weights from the model's files (auto, safetensors, gguf), or random ones made from its "
         "configuration alone (dummy).",
     .commands = kOnModel | set_of({train}),
     .apply =
         [](Settings& s, const OptionValue& v) {
           const std::string& format = as_text(v);
           s.load.load_format = format == "dummy" ? LoadFormat::dummy : LoadFormat::files;
           s.file_format = format == "safetensors" || format == "gguf" ? format : "";
         }},
    {.name = "dtype",
     .placeholder = "TYPE",
     .choices = "auto bfloat16 float16 float32",
     .default_text = "auto",
     .help = "Type of the weights in memory: auto (as stored), bfloat16, float16 or float32; for "
             "short bf16, f16 and f32.",
     .commands = kOnModel | set_of({train}),
     .to = kTo<&Settings::load, &LoadOptions::dtype>},
    {.default_text = "auto",
     .help = "Type of the weights that are written: auto (as stored, quantised ones as float32), "
             "bfloat16, float16 or float32; for short bf16, f16 and f32.",
     .commands = set_of({convert})},
    {.default_text = "auto",
     .help = "Type of the weights that are written: auto (as stored, formerly quantised ones as "
             "bfloat16), bfloat16, float16 or float32; for short bf16, f16 and f32.",
     .commands = set_of({fuse})},
    {.name = "quantize",
     .placeholder = "FORMAT",
     .choices = "none q4 q8",
     .default_text = "none",
     .help = "Quantise plain weights while loading: q4 (4 bits, affine) or q8 (8 bits, symmetric), "
             "in groups of 64.",
     .commands = kLoading | set_of({train}),
     .to = kTo<&Settings::load, &LoadOptions::quantize>},
    {.name = "weights-cache",
     .placeholder = "DIR",
     .default_text = "off",
     .help = "Keep packed (and quantised) weights in DIR, so that the next start only maps them; "
             "its files may be deleted at any time.",
     .commands = kLoading | set_of({train}),
     .to = kTo<&Settings::load, &LoadOptions::weights_cache>},
    {.name = "chat-template",
     .placeholder = "FILE|NAME",
     .default_text = "the model's own",
     .help = "Chat template: a file, one of the model's by name, or chatml, gemma or llama3.",
     .commands = kChatting | set_of({decide, batch, serve, train}),
     .to = kTo<&Settings::load, &LoadOptions::chat_template>},
    {.name = "typed-special-tokens",
     .help = "Special tokens typed by users and tools become tokens instead of text.",
     .commands = set_of({chat, decide, batch, serve}),
     .to = kTo<&Settings::load, &LoadOptions::typed_special_tokens>},
    {.name = "served-model-name",
     .placeholder = "NAME",
     .default_text = "the model's path and its last part",
     .help = "Name of the model in requests; repeat for several. Answers use the first.",
     .commands = set_of({batch, serve}),
     .to = kTo<&Settings::served_model_names>},
    {.name = "max-model-len",
     .aliases = "-c --ctx-size --context",
     .placeholder = "N",
     .limits = {1, kMaxTokens},
     .default_text = "the model's, if the cache holds it",
     .help = "Longest context, prompt and output together, in tokens.",
     .commands = kOnModel,
     .to = kTo<&Settings::load, &LoadOptions::max_model_len>},
    {.default_text = "the model's, if the cache holds it",
     .help = "Tokens in each window that --check measures.",
     .commands = set_of({quantize}),
     .needs = "check"},
    {.name = "max-kv-size",
     .placeholder = "N",
     .limits = {1, kMaxTokens},
     .default_text = "off",
     .help = "Let every layer see only the last N tokens, so that a text of any length fits.",
     .commands = kLoading,
     .to = kTo<&Settings::load, &LoadOptions::max_kv_size>},
    {.name = "threads",
     .aliases = "-t",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {0, 1024},
     .default_text = "0, one per usable core",
     .help = "Threads that compute; their number never changes the output.",
     .commands = (kLoading & ~set_of({bench})) | set_of({quantize, fuse, train}),
     .apply = [](Settings& s,
                 const OptionValue& v) { s.load.num_threads = static_cast<int>(as_integer(v)); }},
    {.name = "device",
     .placeholder = "DEVICE",
     .default_text = "auto",
     .help = "What computes: auto (the CPU, for now), cpu, cuda (the first NVIDIA GPU) or cuda:N.",
     .commands = kOnModel,
     .to = kTo<&Settings::load, &LoadOptions::device>},
    {.name = "gpu-layers",
     .aliases = "-ngl --n-gpu-layers",
     .placeholder = "N",
     .limits = {0, kMaxTokens},
     .default_text = "all",
     .help = "Layers to compute on the GPU: all of the model's, or 0 for --device cpu.",
     .commands = kLoading,
     .to = kTo<&Settings::load, &LoadOptions::gpu_layers>},
    {.name = "pin-threads",
     .help = "Keep each thread but the first on one core: faster on machines with several memory "
             "nodes.",
     .commands = kLoading | set_of({train}),
     .to = kTo<&Settings::load, &LoadOptions::pin_threads>},

    {.name = "activations",
     .placeholder = "TYPE",
     .choices = "auto int8 bfloat16 plain",
     .default_text = "auto",
     .help = "Type of the inputs of quantised weights: int8 (auto, the fastest), bfloat16 or bf16 "
             "(closer to the plain model), or plain: weights are unpacked when they are loaded.",
     .commands = kOnModel | set_of({train}),
     .to = kTo<&Settings::load, &LoadOptions::activations>},
    {.default_text = "auto",
     .help = "Type of the inputs of quantised weights: int8 (auto, the fastest), bfloat16 or bf16 "
             "(closer to the plain model), or plain: weights are unpacked when they are loaded.",
     .commands = set_of({quantize}),
     .needs = "check"},
    {.name = "kv-cache-dtype",
     .placeholder = "TYPE",
     .choices = "auto bfloat16 float16 float32 int8",
     .default_text = "auto",
     .help =
         "Type of cached keys and values: auto (float32 for plain float32 weights, else bfloat16), "
         "bfloat16, float16, float32, or int8 (about half the memory of bfloat16).",
     .group = OptionGroup::memory,
     .commands = kOnModel | set_of({train}),
     .to = kTo<&Settings::load, &LoadOptions::kv_cache_dtype>},
    {.name = "kv-cache-memory-bytes",
     .aliases = "--kv-cache-memory",
     .placeholder = "SIZE",
     .default_text = "for --max-num-seqs full contexts, at most a quarter of free memory",
     .help = "Memory for cached keys and values, e.g. 512M or 4G.",
     .group = OptionGroup::memory,
     .commands = kLoading,
     .to = kTo<&Settings::load, &LoadOptions::kv_cache_memory_bytes>},
    {.name = "gpu-memory-utilization",
     .placeholder = "X",
     .limits = {.min = 0, .max = 1, .above_min = true},
     .default_text = "0.9",
     .help = "Share of the GPU's memory to use: for the weights, the rest for keys and values.",
     .group = OptionGroup::memory,
     .commands = kLoading,
     .needs = "device=cuda",
     .to = kTo<&Settings::load, &LoadOptions::gpu_memory_utilization>},
    {.name = "block-size",
     .placeholder = "N",
     .limits = {1, 4096},
     .default_text = "16",
     .help = "Tokens in one block of the cache.",
     .group = OptionGroup::memory,
     .commands = kOnModel,
     .to = kTo<&Settings::load, &LoadOptions::block_size>},
    {.name = "memory-limit",
     .placeholder = "SIZE",
     .default_text = "none",
     .help = "Most memory to take, e.g. 4G; needing more is an error.",
     .group = OptionGroup::memory,
     .commands = kLoading | set_of({train}),
     .to = kTo<&Settings::load, &LoadOptions::memory_limit_bytes>},
    {.name = "cache-limit",
     .placeholder = "SIZE",
     .default_text = "none",
     .help = "Most freed memory to keep for reuse.",
     .group = OptionGroup::memory,
     .commands = kLoading,
     .to = kTo<&Settings::load, &LoadOptions::cache_limit_bytes>},
    {.name = "mlock",
     .help = "Lock weights and cache in memory, so that they are never swapped out.",
     .group = OptionGroup::memory,
     .commands = kLoading,
     .to = kTo<&Settings::load, &LoadOptions::lock_memory>},
};

}  // namespace

std::vector<OptionDef> model_options() {
  return section(OptionGroup::model, kEveryCommand, kModelOptions);
}

}  // namespace paceline
