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
  throw Error(ErrorCode::invalid,
              "--model: empty, expected a directory, a GGUF file or OWNER/NAME; leave the option "
              "out for the bundled model");
}

// Commands that work on a model alone, and take it without its flag.
constexpr CommandSet kModelIsBare = set_of({inspect, bench, quantize, convert});

// Commands whose requests another backend may compute.
constexpr CommandSet kOnBackend = set_of({generate, chat, classify, decide, score, batch, serve});

constexpr OptionDef kModelOptions[] = {
    // The model and how it runs.
    option("model",
           {OptionKind::text,
            [](Settings& s, const OptionValue& v) { s.load.model = model_named(as_text(v)); }},
           "Model directory, GGUF file, or OWNER/NAME from the local Hugging Face cache.",
           {.aliases = "-m",
            .placeholder = "MODEL",
            .default_text = "the small model that comes with Paceline",
            .commands = kEveryCommand & ~set_of({adapter, trace, list, serve}),
            .bare_in = kModelIsBare}),
    elsewhere("Model on which --replay runs the requests.",
              {.default_text = "the model that the trace names",
               .commands = set_of({trace}),
               .needs = "replay"}),
    elsewhere("Base model that the adapter must fit.",
              {.default_text = "none: nothing is compared", .commands = set_of({adapter})}),
    option("model",
           {OptionKind::texts,
            [](Settings& s, const OptionValue& v) {
              s.models = std::get<std::vector<std::string>>(v);
              for (const std::string& model : s.models) model_named(model);
              const auto first = read_lora_source(s.models.front());  // NAME=MODEL, too
              s.load.model = first ? first->path : s.models.front();
            }},
           "Directory, GGUF file, OWNER/NAME, or NAME=one of them; repeat for several.",
           {.aliases = "-m",
            .placeholder = "MODEL",
            .default_text = "the small model that comes with Paceline",
            .commands = set_of({serve}),
            .bare_in = set_of({serve})}),
    option("models-dir", kTo<&Settings::models_directory>,
           "Directory of further models to serve, folders and GGUF files by their names; each is "
           "loaded by its first request.",
           {.placeholder = "DIR", .commands = set_of({serve})}),
    option("unknown-model",
           {OptionKind::text,
            [](Settings& s, const OptionValue& v) {
              s.server.accepts_any_model = as_text(v) == "first";
            }},
           "What a request gets that names none of the models: refuse (404), or the first model.",
           {.placeholder = "WHAT",
            .choices = "refuse first",
            .default_text = "refuse",
            .commands = set_of({serve})}),
    option("sleep-idle-seconds", kTo<&Settings::server, &ServerOptions::sleep_after>,
           "Seconds without requests after which a model is unloaded; the next request loads it.",
           {.placeholder = "S",
            .limits = {0, 31536000},
            .default_text = "0, never",
            .commands = set_of({serve})}),
    option(
        "backend", kTo<&Settings::load, &LoadOptions::backend>,
        "Who computes the model: native (Paceline), or, for a model that it refuses, a Python "
        "with transformers or mlx_lm.",
        {.placeholder = "NAME", .choices = "native transformers mlx_lm", .commands = kOnBackend}),
    option("backend-timeout", kTo<&Settings::load, &LoadOptions::backend_timeout_s>,
           "Seconds after which a --backend that says nothing is ended.",
           {.placeholder = "S", .limits = {1, 86400}, .commands = kOnBackend, .needs = "backend"}),
    option("load-format",
           {OptionKind::choice,
            [](Settings& s, const OptionValue& v) {
              const std::string& format = as_text(v);
              s.load.load_format = format == "dummy" ? LoadFormat::dummy : LoadFormat::files;
              s.file_format = format == "safetensors" || format == "gguf" ? format : "";
            }},
           "Weights from the model's files (auto, safetensors, gguf), or random ones made from its "
           "configuration alone (dummy).",
           {.placeholder = "FORMAT",
            .choices = "auto safetensors gguf dummy",
            .default_text = "auto",
            .commands = kOnModel | set_of({train})}),
    option("dtype", kTo<&Settings::load, &LoadOptions::dtype>,
           "Type of the weights in memory: auto (as stored), bfloat16, float16 or float32; for "
           "short bf16, f16 and f32.",
           {.placeholder = "TYPE",
            .choices = "auto bfloat16 float16 float32",
            .commands = kOnModel | set_of({train})}),
    elsewhere("Type of the weights that are written: auto (as stored, quantised ones as float32), "
              "bfloat16, float16 or float32; for short bf16, f16 and f32.",
              {.commands = set_of({convert})}),
    elsewhere("Type of the weights that are written: auto (as stored, formerly quantised ones as "
              "bfloat16), bfloat16, float16 or float32; for short bf16, f16 and f32.",
              {.commands = set_of({fuse})}),
    option(
        "quantize", kTo<&Settings::load, &LoadOptions::quantize>,
        "Quantise plain weights while loading: q4 (4 bits, affine) or q8 (8 bits, symmetric), "
        "in groups of 64.",
        {.placeholder = "FORMAT", .choices = "none q4 q8", .commands = kLoading | set_of({train})}),
    option("weights-cache", kTo<&Settings::load, &LoadOptions::weights_cache>,
           "Keep packed (and quantised) weights in DIR, so that the next start only maps them; its "
           "files may be deleted at any time.",
           {.placeholder = "DIR", .default_text = "off", .commands = kLoading | set_of({train})}),
    option("chat-template", kTo<&Settings::load, &LoadOptions::chat_template>,
           "Chat template: a file, one of the model's by name, or chatml, gemma or llama3.",
           {.placeholder = "FILE|NAME",
            .default_text = "the model's own",
            .commands = kChatting | set_of({decide, batch, serve, train})}),
    option("typed-special-tokens", kTo<&Settings::load, &LoadOptions::typed_special_tokens>,
           "Special tokens typed by users and tools become tokens instead of text.",
           {.commands = set_of({chat, decide, batch, serve})}),
    option("served-model-name", kTo<&Settings::served_model_names>,
           "Name of the model in requests; repeat for several. Answers use the first.",
           {.placeholder = "NAME",
            .default_text = "the model's path and its last part",
            .commands = set_of({batch, serve})}),
    option("max-model-len", kTo<&Settings::load, &LoadOptions::max_model_len>,
           "Longest context, prompt and output together, in tokens.",
           {.aliases = "-c --ctx-size --context",
            .limits = {1, kMaxTokens},
            .default_text = "the model's, if the cache holds it",
            .commands = kOnModel}),
    elsewhere("Tokens in each window that --check measures.",
              {.default_text = "the model's, if the cache holds it",
               .commands = set_of({quantize}),
               .needs = "check"}),
    option("max-kv-size", kTo<&Settings::load, &LoadOptions::max_kv_size>,
           "Let every layer see only the last N tokens, so that a text of any length fits.",
           {.limits = {1, kMaxTokens}, .default_text = "off", .commands = kLoading}),
    option("threads", kTo<&Settings::load, &LoadOptions::num_threads>,
           "Threads that compute; their number never changes the output.",
           {.aliases = "-t",
            .limits = {0, 1024},
            .default_text = "0, one per usable core",
            .commands = (kLoading & ~set_of({bench})) | set_of({quantize, fuse, train})}),
    option(
        "device", kTo<&Settings::load, &LoadOptions::device>,
        "What computes: auto (the first NVIDIA GPU if there is one and the model fits it, else the "
        "CPU), cpu, cuda (the first NVIDIA GPU) or cuda:N.",
        {.placeholder = "DEVICE", .commands = kOnModel}),
    elsewhere(
        "What computes: auto or cpu (the CPU), cuda (the first NVIDIA GPU) or cuda:N, which train "
        "LoRA beside models without mixtures of experts and without layers with states.",
        {.placeholder = "DEVICE", .commands = set_of({train})}),
    option("gpu-layers", kTo<&Settings::load, &LoadOptions::gpu_layers>,
           "Layers to compute on the GPU: all of the model's, or 0 for --device cpu.",
           {.aliases = "-ngl --n-gpu-layers",
            .limits = {0, kMaxTokens},
            .default_text = "all",
            .commands = kLoading}),
    option(
        "pin-threads", kTo<&Settings::load, &LoadOptions::pin_threads>,
        "Keep each thread but the first on one core: faster on machines with several memory nodes.",
        {.commands = kLoading | set_of({train})}),
    option("activations", kTo<&Settings::load, &LoadOptions::activations>,
           "Type of the inputs of quantised weights: int8 (auto, the fastest), bfloat16 or bf16 "
           "(closer to the plain model), or plain: weights are unpacked when they are loaded.",
           {.placeholder = "TYPE",
            .choices = "auto int8 bfloat16 plain",
            .commands = kOnModel | set_of({train})}),
    elsewhere("Type of the inputs of quantised weights: int8 (auto, the fastest), bfloat16 or bf16 "
              "(closer to the plain model), or plain: weights are unpacked when they are loaded.",
              {.commands = set_of({quantize}), .needs = "check"}),
    option("kv-cache-dtype", kTo<&Settings::load, &LoadOptions::kv_cache_dtype>,
           "Type of cached keys and values: auto (float32 for plain float32 weights, else "
           "bfloat16), bfloat16, float16, float32, or int8 (about half the memory of bfloat16).",
           {.placeholder = "TYPE",
            .choices = "auto bfloat16 float16 float32 int8",
            .group = OptionGroup::memory,
            .commands = kOnModel | set_of({train})}),
    option(
        "state-dtype", kTo<&Settings::load, &LoadOptions::state_dtype>,
        "Type of the states that some layers keep instead of keys and values: auto or float32, or "
        "bfloat16 (about half the memory; on the CPU alone).",
        {.aliases = "--mamba-ssm-cache-dtype",
         .placeholder = "TYPE",
         .choices = "auto float32 bfloat16",
         .group = OptionGroup::memory,
         .commands = kOnModel}),
    option("kv-cache-memory-bytes", kTo<&Settings::load, &LoadOptions::kv_cache_memory_bytes>,
           "Memory for cached keys and values, e.g. 512M or 4G.",
           {.aliases = "--kv-cache-memory",
            .default_text = "for --max-num-seqs full contexts, at most a quarter of free memory",
            .commands = kLoading}),
    option("gpu-memory-utilization", kTo<&Settings::load, &LoadOptions::gpu_memory_utilization>,
           "Share of the GPU's memory to use: for the weights, the rest for keys and values.",
           {.limits = {.min = 0, .max = 1, .above_min = true},
            .commands = kLoading,
            .needs = "!device=cpu"}),
    option("block-size", kTo<&Settings::load, &LoadOptions::block_size>,
           "Tokens in one block of the cache.", {.limits = {1, 4096}, .commands = kOnModel}),
    option("memory-limit", kTo<&Settings::load, &LoadOptions::memory_limit_bytes>,
           "Most memory to take, e.g. 4G; needing more is an error.",
           {.default_text = "none", .commands = kLoading | set_of({train})}),
    option("cache-limit", kTo<&Settings::load, &LoadOptions::cache_limit_bytes>,
           "Most freed memory to keep for reuse.", {.default_text = "none", .commands = kLoading}),
    option("mlock", kTo<&Settings::load, &LoadOptions::lock_memory>,
           "Lock weights and cache in memory, so that they are never swapped out.",
           {.commands = kLoading}),
};

}  // namespace

std::vector<OptionDef> model_options() {
  return section(OptionGroup::model, kEveryCommand, kModelOptions);
}

}  // namespace paceline
