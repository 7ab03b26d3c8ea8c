// The commands of the program.
#pragma once

#include <span>
#include <string_view>

#include "cli/option.h"
#include "cli/session.h"

namespace paceline {

using RunCommand = int(const Settings& settings, Session& session);  // returns the exit code

struct CommandDef {
  CommandId id;
  std::string_view name;
  std::string_view alias = {};        // another name; empty: none
  std::string_view alias_takes = {};  // the option that the first bare word is under the alias
  std::string_view summary;           // one line
  std::string_view examples;          // one a line
  std::string_view basics;            // names of the options that --help shows
  std::string_view notes;             // a paragraph of --help
  std::string_view details = {};      // paragraphs that --help-all adds
  RunCommand* run;
};

std::span<const CommandDef> command_table();
// Throws UsageError with a suggestion for an unknown name, and with the way that exists here for
// another program's command, whose first argument is `argument`.
const CommandDef& find_command(std::string_view name, std::string_view argument = {});

// Each is in a file of its own in this folder.
RunCommand run_generate, run_chat, run_classify, run_decide, run_score, run_embed, run_render,
    run_tokenize, run_detokenize, run_grammar, run_perplexity, run_inspect, run_list, run_bench,
    run_trace, run_batch, run_serve, run_quantize, run_convert, run_train, run_adapter, run_fuse,
    run_verify;

}  // namespace paceline
