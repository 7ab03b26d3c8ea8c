// Options that say how the next token is chosen and when to stop.
#include "cli/option_groups.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr CommandSet kDrawing = set_of({generate, chat, classify});

constexpr OptionDef kGenerationOptions[] = {
    // How the next token is chosen.
    {.name = "temperature",
     .aliases = "--temp",
     .placeholder = "T",
     .kind = OptionKind::number,
     .limits = {0, 2},
     .default_text = "the model's, else 1",
     .help = "Randomness of the draw; 0 always takes the likeliest token.",
     .group = OptionGroup::sampling,
     .commands = kDrawing,
     .apply = [](Settings& s, const OptionValue& v) { s.generate.temperature = as_real(v); }},
    {.name = "top-p",
     .placeholder = "P",
     .kind = OptionKind::number,
     .limits = {0, 1, true},
     .default_text = "the model's, else 1 (off)",
     .help = "Draw from the likeliest tokens that together have probability P.",
     .group = OptionGroup::sampling,
     .commands = kDrawing,
     .apply = [](Settings& s, const OptionValue& v) { s.generate.top_p = as_real(v); }},
    {.name = "top-k",
     .placeholder = "K",
     .kind = OptionKind::integer,
     .limits = {0, kMaxTokens},
     .default_text = "the model's, else 0 (off)",
     .help = "Draw from the K likeliest tokens.",
     .group = OptionGroup::sampling,
     .commands = kDrawing,
     .apply = [](Settings& s,
                 const OptionValue& v) { s.generate.top_k = static_cast<int32_t>(as_integer(v)); }},
    {.name = "min-p",
     .placeholder = "P",
     .kind = OptionKind::number,
     .limits = {0, 1},
     .default_text = "the model's, else 0 (off)",
     .help = "Drop tokens less likely than P times the likeliest.",
     .group = OptionGroup::sampling,
     .commands = kDrawing,
     .apply = [](Settings& s, const OptionValue& v) { s.generate.min_p = as_real(v); }},
    {.name = "repetition-penalty",
     .aliases = "--repeat-penalty",
     .placeholder = "R",
     .kind = OptionKind::number,
     .limits = {.min = 0, .above_min = true},
     .default_text = "the model's, else 1 (off)",
     .help = "Make every token of prompt and output less likely (above 1) or more (below).",
     .group = OptionGroup::sampling,
     .commands = kDrawing,
     .apply = [](Settings& s,
                 const OptionValue& v) { s.generate.repetition_penalty = as_real(v); }},
    {.name = "frequency-penalty",
     .placeholder = "X",
     .kind = OptionKind::number,
     .limits = {-2, 2},
     .default_text = "0",
     .help = "Subtract X from a token's logit for each time it is in the output.",
     .group = OptionGroup::sampling,
     .commands = kDrawing,
     .apply = [](Settings& s, const OptionValue& v) { s.generate.frequency_penalty = as_real(v); }},
    {.name = "presence-penalty",
     .placeholder = "X",
     .kind = OptionKind::number,
     .limits = {-2, 2},
     .default_text = "0",
     .help = "Subtract X from a token's logit when it is in the output at all.",
     .group = OptionGroup::sampling,
     .commands = kDrawing,
     .apply = [](Settings& s, const OptionValue& v) { s.generate.presence_penalty = as_real(v); }},
    {.name = "logit-bias",
     .placeholder = "ID=X",
     .kind = OptionKind::logit_bias,
     .help = "Add X to the logit of token ID; repeat it for several.",
     .group = OptionGroup::sampling,
     .commands = kDrawing,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.generate.logit_bias = std::get<std::vector<std::pair<int32_t, float>>>(v);
         }},
    {.name = "allowed-token-ids",
     .placeholder = "IDS",
     .kind = OptionKind::token_ids,
     .help = "Draw no tokens but these, an end of sequence included; separated by commas.",
     .group = OptionGroup::sampling,
     .commands = kWriting,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.generate.allowed_token_ids = std::get<std::vector<int32_t>>(v);
         }},
    {.name = "bad-words",
     .placeholder = "TEXT",
     .kind = OptionKind::texts,
     .help =
         "Draw no token that completes TEXT as it is encoded, alone or behind a space; repeat it.",
     .group = OptionGroup::sampling,
     .commands = kWriting,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.generate.bad_words = std::get<std::vector<std::string>>(v);
         }},
    {.name = "sampler-order",
     .placeholder = "ORDER",
     .kind = OptionKind::choice,
     .choices = "default mlx",
     .default_text = "default",
     .help =
         "Order of the filters: default (temperature, min-p, top-k, top-p) or mlx (top-p, min-p, "
         "top-k, temperature).",
     .group = OptionGroup::sampling,
     .commands = kDrawing,
     .apply = [](Settings& s,
                 const OptionValue& v) { s.generate.mlx_sampler_order = as_text(v) == "mlx"; }},

    // When to stop.
    {.name = "max-tokens",
     .aliases = "-n --n-predict",
     .placeholder = "N",
     .kind = OptionKind::integer,
     .limits = {0, kMaxTokens},
     .default_text = "the model's, else 256; chat: to the end of the context",
     .help = "Stop after N tokens.",
     .group = OptionGroup::stopping,
     .commands = kWriting,
     .apply = [](Settings& s, const OptionValue& v) { s.generate.max_tokens = as_integer(v); }},
    {.name = "stop",
     .aliases = "-r --reverse-prompt",
     .placeholder = "TEXT",
     .kind = OptionKind::texts,
     .help = "Stop before TEXT would appear; repeat it for up to 4.",
     .group = OptionGroup::stopping,
     .commands = kWriting,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.generate.stop = std::get<std::vector<std::string>>(v);
         }},
    {.name = "stop-token-ids",
     .placeholder = "IDS",
     .kind = OptionKind::token_ids,
     .help = "Stop at any of these token ids, separated by commas.",
     .group = OptionGroup::stopping,
     .commands = kWriting,
     .apply =
         [](Settings& s, const OptionValue& v) {
           s.generate.stop_token_ids = std::get<std::vector<int32_t>>(v);
         }},
    {.name = "ignore-eos",
     .help = "Go on past the model's end-of-sequence tokens.",
     .group = OptionGroup::stopping,
     .commands = kWriting,
     .apply = [](Settings& s, const OptionValue& v) { s.generate.ignore_eos = as_flag(v); }},
};

}  // namespace

std::span<const OptionDef> generation_options() { return kGenerationOptions; }

}  // namespace paceline
