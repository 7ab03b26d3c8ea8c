#include "cli/option_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/suggest.h"
#include "cli/command.h"

namespace paceline {
namespace {

struct ForeignOption {
  std::string_view flag;
  std::string_view name = {};    // of the option that is the same here
  std::string_view advice = {};  // where no option is
};

constexpr std::string_view kAlwaysOn = "it is always on here";
constexpr std::string_view kDerived = "it follows from the chat template here";

// Options that users of other programs type: of llama.cpp's cli and server, vLLM, Ollama's API,
// mlx-lm and text-generation-inference, as their --help and documentation name them.
constexpr ForeignOption kForeignOptions[] = {
    {.flag = "--max-new-tokens", .name = "max-tokens"},
    {.flag = "--num-predict", .name = "max-tokens"},
    {.flag = "--max-completion-tokens", .name = "max-tokens"},
    {.flag = "--num-ctx", .name = "max-model-len"},
    {.flag = "--context-length", .name = "max-model-len"},
    {.flag = "--max-total-tokens", .name = "max-model-len"},
    {.flag = "--max-seq-len", .name = "max-model-len"},
    {.flag = "--max-input-length", .name = "max-model-len"},
    {.flag = "--num-gpu", .name = "gpu-layers"},
    {.flag = "--num-thread", .name = "threads"},
    {.flag = "--threads-batch", .name = "threads"},
    {.flag = "-tb", .name = "threads"},
    {.flag = "--numa", .name = "pin-threads"},
    {.flag = "--ubatch-size", .name = "max-num-batched-tokens"},
    {.flag = "-ub", .name = "max-num-batched-tokens"},
    {.flag = "--prefill-step-size", .name = "prefill-chunk"},
    {.flag = "--max-concurrent-requests", .name = "max-requests"},
    {.flag = "--max-batch-prefill-tokens", .name = "max-num-batched-tokens"},
    {.flag = "--cache-type-k", .name = "kv-cache-dtype"},
    {.flag = "--cache-type-v", .name = "kv-cache-dtype"},
    {.flag = "-ctk", .name = "kv-cache-dtype"},
    {.flag = "-ctv", .name = "kv-cache-dtype"},
    {.flag = "--kv-bits", .name = "kv-cache-dtype"},
    {.flag = "--quantization", .name = "quantize"},
    {.flag = "--alias", .name = "served-model-name"},
    {.flag = "--ssl-keyfile", .name = "tls-key"},
    {.flag = "--ssl-key-file", .name = "tls-key"},
    {.flag = "--ssl-certfile", .name = "tls-cert"},
    {.flag = "--ssl-cert-file", .name = "tls-cert"},
    {.flag = "--cors-allow-origin", .name = "allowed-origin"},
    {.flag = "--allowed-origins", .name = "allowed-origin"},
    {.flag = "--timeout", .name = "request-timeout"},
    {.flag = "--draft-model", .name = "speculative-model"},
    {.flag = "--num-draft-tokens", .name = "num-speculative-tokens"},
    {.flag = "--draft", .name = "num-speculative-tokens"},
    {.flag = "--draft-n", .name = "num-speculative-tokens"},
    {.flag = "--lora-path", .name = "lora"},
    {.flag = "--adapter-path", .name = "lora"},
    {.flag = "--adapter", .name = "lora"},
    {.flag = "--hf-path", .name = "model"},
    {.flag = "--mlx-path", .name = "output"},
    {.flag = "--q-bits", .name = "bits"},
    {.flag = "--q-group-size", .name = "group-size"},
    {.flag = "--grammar-string", .name = "grammar"},
    {.flag = "--json-schema-file", .name = "json-schema"},
    {.flag = "-j", .name = "json-schema"},
    {.flag = "--prompt-file", .name = "file"},
    {.flag = "--system-message", .name = "system"},
    {.flag = "--chat-template-file", .name = "chat-template"},
    {.flag = "--chat-template-config", .name = "chat-template-kwargs"},
    {.flag = "--disable-log-requests", .name = "log-format"},
    {.flag = "--per-device-train-batch-size", .name = "batch-size"},
    {.flag = "--gradient-accumulation-steps", .name = "grad-accumulation-steps"},
    {.flag = "--lr-scheduler-type", .name = "lr-schedule"},
    {.flag = "--stream", .advice = "answers are always streamed here"},
    {.flag = "--flash-attn", .advice = kAlwaysOn},
    {.flag = "-fa", .advice = kAlwaysOn},
    {.flag = "--cont-batching", .advice = kAlwaysOn},
    {.flag = "-cb", .advice = kAlwaysOn},
    {.flag = "--enable-prefix-caching", .advice = kAlwaysOn},
    {.flag = "--enable-chunked-prefill", .advice = kAlwaysOn},
    {.flag = "--jinja", .advice = kAlwaysOn},
    {.flag = "--embedding", .advice = kAlwaysOn},
    {.flag = "--embeddings", .advice = kAlwaysOn},
    {.flag = "--metrics", .advice = kAlwaysOn},
    {.flag = "--slots", .advice = kAlwaysOn},
    {.flag = "--enable-auto-tool-choice", .advice = kAlwaysOn},
    {.flag = "--tool-call-parser", .advice = kDerived},
    {.flag = "--reasoning-parser", .advice = kDerived},
    {.flag = "--reasoning-format", .advice = kDerived},
    {.flag = "--conversation", .advice = "`paceline chat` holds conversations"},
    {.flag = "-cnv", .advice = "`paceline chat` holds conversations"},
    {.flag = "--interactive", .advice = "`paceline chat` holds conversations"},
    {.flag = "--hf-repo", .advice = "nothing is downloaded here; `hf download NAME`, then -m NAME"},
    {.flag = "-hf", .advice = "nothing is downloaded here; `hf download NAME`, then -m NAME"},
    {.flag = "--trust-remote-code", .advice = "no code of a model is run here"},
    {.flag = "--tensor-parallel-size", .advice = "one device computes here"},
    {.flag = "-tp", .advice = "one device computes here"},
    {.flag = "--pipeline-parallel-size", .advice = "one device computes here"},
};

const ForeignOption* find_foreign(std::string_view flag) {
  const auto found = std::find_if(
      std::begin(kForeignOptions), std::end(kForeignOptions),
      [&](const ForeignOption& option) { return edit_distance(option.flag, flag) == 0; });
  return found == std::end(kForeignOptions) ? nullptr : found;
}

// The option of any command with this flag, written with '-' or '_'.
const OptionDef* find_flag(std::string_view flag) {
  for (const OptionDef& option : option_table()) {
    const auto flags = flags_of(option);
    if (std::any_of(flags.begin(), flags.end(), [&](const std::string& own) {
          return own.size() > 2 && edit_distance(own, flag) == 0;
        })) {
      return &option;
    }
  }
  return nullptr;
}

// "generate, chat and 3 more commands have it".
std::string owners_text(std::string_view name) {
  constexpr size_t kMost = 3;
  std::vector<std::string_view> owners;
  for (const CommandDef& command : command_table()) {
    const OptionDef* const option = find_option(name, command.id);
    if (contains(option->commands, command.id)) owners.push_back(command.name);
  }
  if (owners.size() == 1) return fmt::format("{} has it", owners[0]);
  if (owners.size() > kMost) {
    return fmt::format("{} and {} and {} more commands have it", owners[0], owners[1],
                       owners.size() - 2);
  }
  const std::string_view last = owners.back();
  owners.pop_back();
  return fmt::format("{} and {} have it", fmt::join(owners, ", "), last);
}

// The option exists, though not in this command.
std::string elsewhere_text(const OptionDef& option, CommandId command) {
  const bool takes_requests = command == CommandId::serve || command == CommandId::batch;
  if (takes_requests && option.generation != nullptr) {
    return fmt::format("; a request sets it: {}", option.generation->name);
  }
  return fmt::format("; {}", owners_text(option.name));
}

}  // namespace

bool is_foreign_option(std::string_view flag) { return find_foreign(flag) != nullptr; }

std::vector<std::string_view> foreign_options() {
  std::vector<std::string_view> flags;
  for (const ForeignOption& option : kForeignOptions) flags.push_back(option.flag);
  return flags;
}

std::string option_hint(std::string_view flag, CommandId command) {
  const ForeignOption* const foreign = find_foreign(flag);
  if (foreign != nullptr && !foreign->advice.empty()) return fmt::format("; {}", foreign->advice);
  if (foreign != nullptr) {
    const OptionDef* const same = find_option(foreign->name, command);
    const std::string is = fmt::format("; it is --{} here", foreign->name);
    return contains(same->commands, command) ? is : is + elsewhere_text(*same, command);
  }
  std::vector<std::string> own;
  for (const OptionDef& option : option_table()) {
    if (!contains(option.commands, command)) continue;
    for (std::string& name : flags_of(option)) {
      if (name.size() > 2) own.push_back(std::move(name));
    }
  }
  // "--max_tokens" is nearer than the same name in another command.
  const auto is_same = [&](const std::string& name) { return edit_distance(name, flag) == 0; };
  if (std::none_of(own.begin(), own.end(), is_same)) {
    if (const OptionDef* other = find_flag(flag)) return elsewhere_text(*other, command);
  }
  return did_you_mean(flag, std::vector<std::string_view>(own.begin(), own.end()));
}

}  // namespace paceline
