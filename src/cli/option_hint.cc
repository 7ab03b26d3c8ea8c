#include "cli/option_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/suggest.h"
#include "cli/command.h"
#include "cli/words.h"

namespace paceline {
namespace {

struct ForeignOption {
  std::string_view flags;        // separated by blanks
  std::string_view name = {};    // of the option that is the same here
  std::string_view advice = {};  // where no option is
};

// Options that users of other programs type: of llama.cpp's cli and server, vLLM, Ollama's API,
// mlx-lm and text-generation-inference, as their --help and documentation name them.
constexpr ForeignOption kForeignOptions[] = {
    {"--max-new-tokens --num-predict --max-completion-tokens", "max-tokens"},
    {"--num-ctx --context-length --max-total-tokens --max-seq-len --max-input-length",
     "max-model-len"},
    {"--num-gpu", "gpu-layers"},
    {"--num-thread --threads-batch -tb", "threads"},
    {"--numa", "pin-threads"},
    {"--ubatch-size -ub --max-batch-prefill-tokens", "max-num-batched-tokens"},
    {"--prefill-step-size", "prefill-chunk"},
    {"--max-concurrent-requests", "max-requests"},
    {"--cache-type-k --cache-type-v -ctk -ctv --kv-bits", "kv-cache-dtype"},
    {"--quantization", "quantize"},
    {"--alias", "served-model-name"},
    {"--ssl-keyfile --ssl-key-file", "tls-key"},
    {"--ssl-certfile --ssl-cert-file", "tls-cert"},
    {"--cors-allow-origin --allowed-origins", "allowed-origin"},
    {"--timeout", "request-timeout"},
    {"--draft-model", "speculative-model"},
    {"--num-draft-tokens --draft --draft-n", "num-speculative-tokens"},
    {"--lora-path --adapter-path --adapter", "lora"},
    {"--hf-path", "model"},
    {"--mlx-path", "output"},
    {"--q-bits", "bits"},
    {"--q-group-size", "group-size"},
    {"--grammar-string", "grammar"},
    {"--json-schema-file -j", "json-schema"},
    {"--prompt-file", "file"},
    {"--system-message", "system"},
    {"--chat-template-file", "chat-template"},
    {"--chat-template-config", "chat-template-kwargs"},
    {"--disable-log-requests", "log-format"},
    {"--per-device-train-batch-size", "batch-size"},
    {"--gradient-accumulation-steps", "grad-accumulation-steps"},
    {"--lr-scheduler-type", "lr-schedule"},
    {"--stream", {}, "answers are always streamed here"},
    {"--flash-attn -fa --cont-batching -cb --enable-prefix-caching --enable-chunked-prefill "
     "--jinja --embedding --embeddings --metrics --slots --enable-auto-tool-choice",
     {},
     "it is always on here"},
    {"--tool-call-parser --reasoning-parser --reasoning-format",
     {},
     "it follows from the chat template here"},
    {"--conversation -cnv --interactive", {}, "`paceline chat` holds conversations"},
    {"--hf-repo -hf", {}, "nothing is downloaded here; `hf download NAME`, then -m NAME"},
    {"--trust-remote-code", {}, "no code of a model is run here"},
    {"--tensor-parallel-size -tp --pipeline-parallel-size", {}, "one device computes here"},
};

const ForeignOption* find_foreign(std::string_view flag) {
  for (const ForeignOption& option : kForeignOptions) {
    for (const std::string_view own : split_words(option.flags)) {
      if (edit_distance(own, flag) == 0) return &option;
    }
  }
  return nullptr;
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
  for (const ForeignOption& option : kForeignOptions) {
    for (const std::string_view flag : split_words(option.flags)) flags.push_back(flag);
  }
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
