// Options of the model, how it runs, and the memory it takes.
#include "cli/option_groups.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr OptionDef kModelOptions[] = {
    // The model and how it runs.
    {.name = "model",
     .aliases = "-m",
     .placeholder = "MODEL",
     .kind = OptionKind::text,
     .default_text = "the small model that comes with Paceline",
     .help = "A model directory, a GGUF file, or org/name from the local Hugging Face cache.",
     .group = OptionGroup::model,
     .commands = kEveryCommand,
     .apply = [](Settings& s, const OptionValue& v) { s.load.model = as_text(v); }},
    {.name = "load-format",
     .placeholder = "FORMAT",
     .kind = OptionKind::choice,
     .choices = "auto safetensors gguf dummy",
     .default_text = "auto",
     .help =
         "Where weights come from: auto, safetensors and gguf read the model's files, dummy makes "
         "random ones from the configuration alone.",
     .group = OptionGroup::model,
     .commands = kOnModel,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.load.load_format = as_text(v) == "dummy" ? LoadFormat::dummy : LoadFormat::files;
         }},
    {.name = "dtype",
     .placeholder = "TYPE",
     .kind = OptionKind::choice,
     .choices = "auto bfloat16 float16 float32",
     .default_text = "auto",
     .help = "Type of the weights in memory, or in the directory that convert writes: auto (as "
             "stored), bfloat16, float16 or float32; as all types, bf16, f16 and f32 for short.",
     .group = OptionGroup::model,
     .commands = kOnModel | set_of({convert}),
     .apply = [](Settings& s, const OptionValue& v) { s.load.dtype = as_text(v); }},
    {.name = "quantize",
     .placeholder = "FORMAT",
     .kind = OptionKind::choice,
     .choices = "none q4 q8",
     .default_text = "none",
     .help = "Quantise plain weights while they are loaded: q4 (4 bits, affine) or q8 (8 bits, "
             "symmetric), in groups of 64.",
     .group = OptionGroup::model,
     .commands = kLoading,
     .apply = [](Settings& s, const OptionValue& v) { s.load.quantize = as_text(v); }},
    {.name = "weights-cache",
     .placeholder = "DIR",
     .kind = OptionKind::text,
     .default_text = "off",
     .help = "Keep the weights in DIR as they are computed with, so that the next start maps them "
             "instead of packing (and quantising) them anew; what lies there may be deleted at any "
             "time.",
     .group = OptionGroup::model,
     .commands = kLoading,
     .apply = [](Settings& s, const OptionValue& v) { s.load.weights_cache = as_text(v); }},
    {.name = "chat-template",
     .placeholder = "FILE|NAME",
     .kind = OptionKind::text,
     .default_text = "the model's own",
     .help = "Chat template: a file, the name of one of the model's, or chatml, gemma or llama3.",
     .group = OptionGroup::model,
     .commands = kChatting | set_of({batch, serve}),
     .apply = [](Settings& s, const OptionValue& v) { s.load.chat_template = as_text(v); }},
    {.name = "served-model-name",
     .placeholder = "NAME",
     .kind = OptionKind::texts,
     .default_text = "the model's path and its last part",
     .help = "What requests may call the model; repeat it for several, answers have the first.",
     .group = OptionGroup::model,
     .commands = set_of({batch, serve}),
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.served_model_names = std::get<std::vector<std::string>>(v);
         }},
    {.name = "max-model-len",
     .aliases = "-c --ctx-size --context",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, kMaxTokens},
     .default_text = "the model's, if the cache holds it",
     .help = "Longest context, prompt and output together, in tokens.",
     .group = OptionGroup::model,
     .commands = kOnModel | set_of({quantize}),
     .apply = [](Settings& s, const OptionValue& v) { s.load.max_model_len = as_integer(v); }},
    {.name = "max-kv-size",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, kMaxTokens},
     .default_text = "off",
     .help = "Let every layer see the last N tokens only, so that memory is bounded at any length.",
     .group = OptionGroup::model,
     .commands = kLoading,
     .apply = [](Settings& s, const OptionValue& v) { s.load.max_kv_size = as_integer(v); }},
    {.name = "threads",
     .aliases = "-t",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {0, 1024},
     .default_text = "0, one per usable core",
     .help = "Threads that compute; the output is the same with any number.",
     .group = OptionGroup::model,
     .commands = (kLoading & ~set_of({bench})) | set_of({quantize}),
     .apply = [](Settings& s,
                 const OptionValue& v) { s.load.num_threads = static_cast<int>(as_integer(v)); }},
    {.name = "pin-threads",
     .help =
         "Keep every one of them but the first on a core of its own. Where a machine has several "
         "memory nodes, threads then mostly read weights that they have placed themselves.",
     .group = OptionGroup::model,
     .commands = kLoading,
     .apply = [](Settings& s, const OptionValue& v) { s.load.pin_threads = as_flag(v); }},

    {.name = "activations",
     .placeholder = "TYPE",
     .kind = OptionKind::choice,
     .choices = "auto int8 bfloat16 plain",
     .default_text = "auto",
     .help = "What products with quantised weights round their inputs to: auto (int8), int8 (the "
             "fastest), bfloat16 or bf16 (closer to the plain model), or plain: the weights become "
             "plain "
             "numbers when they are loaded.",
     .group = OptionGroup::model,
     .commands = kOnModel | set_of({quantize}),
     .apply = [](Settings& s, const OptionValue& v) { s.load.activations = as_text(v); }},

    // Memory.
    {.name = "kv-cache-dtype",
     .placeholder = "TYPE",
     .kind = OptionKind::choice,
     .choices = "auto bfloat16 float16 float32 int8",
     .default_text = "auto",
     .help =
         "Type of stored keys and values: auto (float32 for plain float32 weights, else bfloat16), "
         "bfloat16, float16, float32, or int8 (8 bits and a scale for each token and head: about "
         "half the memory of bfloat16).",
     .group = OptionGroup::memory,
     .commands = kOnModel,
     .apply = [](Settings& s, const OptionValue& v) { s.load.kv_cache_dtype = as_text(v); }},
    {.name = "kv-cache-memory-bytes",
     .aliases = "--kv-cache-memory",
     .placeholder = "BYTES",
     .kind = OptionKind::bytes,
     .default_text = "a quarter of free memory",
     .help = "Memory for keys and values, e.g. 512M or 4G.",
     .group = OptionGroup::memory,
     .commands = kLoading,
     .apply = [](Settings& s,
                 const OptionValue& v) { s.load.kv_cache_memory_bytes = as_bytes(v); }},
    {.name = "block-size",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {1, 4096},
     .default_text = "16",
     .help = "Tokens in one block of the cache.",
     .group = OptionGroup::memory,
     .commands = kOnModel,
     .apply = [](Settings& s, const OptionValue& v) { s.load.block_size = as_integer(v); }},
    {.name = "memory-limit",
     .placeholder = "BYTES",
     .kind = OptionKind::bytes,
     .default_text = "none",
     .help = "Fail rather than take more memory than this, e.g. 4G.",
     .group = OptionGroup::memory,
     .commands = kLoading,
     .apply = [](Settings& s, const OptionValue& v) { s.load.memory_limit_bytes = as_bytes(v); }},
    {.name = "cache-limit",
     .placeholder = "BYTES",
     .kind = OptionKind::bytes,
     .default_text = "none",
     .help = "Freed memory that may be kept for reuse.",
     .group = OptionGroup::memory,
     .commands = kLoading,
     .apply = [](Settings& s, const OptionValue& v) { s.load.cache_limit_bytes = as_bytes(v); }},
    {.name = "mlock",
     .help = "Lock weights and cache into memory, so that they are never swapped out.",
     .group = OptionGroup::memory,
     .commands = kLoading,
     .apply = [](Settings& s, const OptionValue& v) { s.load.lock_memory = as_flag(v); }},
};

}  // namespace

std::span<const OptionDef> model_options() { return kModelOptions; }

}  // namespace paceline
