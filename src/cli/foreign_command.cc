#include "cli/foreign_command.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline {
namespace {

// "hf.co/org/name:Q4_K_M", as Ollama and llama.cpp write it: the repository, and which file of it.
std::string download_command(std::string_view name) {
  for (std::string_view host : {"https://", "hf.co/", "huggingface.co/"}) {
    if (name.starts_with(host)) name.remove_prefix(host.size());
  }
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string_view repository = name.substr(0, colon);
  const std::string_view variant = name.substr(std::min(colon + 1, name.size()));
  const bool is_repository = std::count(repository.begin(), repository.end(), '/') == 1;
  if (!is_repository) return "hf download OWNER/NAME";
  if (variant.empty()) return fmt::format("hf download {}", repository);
  return fmt::format("hf download {} --include \"*{}*\"", repository, variant);
}

struct ForeignCommand {
  std::string_view name;
  std::string_view advice;
};

// Commands of Ollama that have no counterpart.
constexpr ForeignCommand kForeignCommands[] = {
    {"ps",
     "a server says what it does: curl http://127.0.0.1:8080/slots (or /v1/models, /metrics)"},
    {"stop", "Ctrl-C or SIGTERM ends `paceline serve`"},
    {"rm", "nothing is stored here: `paceline list` shows where each model lies"},
    {"cp", "nothing is stored here: `paceline list` shows where each model lies"},
    {"create", "a model needs no file here: --system, --chat-template and --lora change a run"},
    {"push", "nothing is uploaded here: `hf upload OWNER/NAME DIR` does that"}};

}  // namespace

std::optional<std::string> foreign_command_advice(std::string_view name,
                                                  std::string_view argument) {
  if (name == "pull" || name == "download") {
    return fmt::format("{}: nothing is downloaded here; do it with: {}", name,
                       download_command(argument));
  }
  for (const ForeignCommand& command : kForeignCommands) {
    if (command.name == name) return fmt::format("{}: {}", name, command.advice);
  }
  return std::nullopt;
}

}  // namespace paceline
