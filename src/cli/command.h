// The commands of the program.
#pragma once

#include <span>
#include <string_view>

#include "cli/option.h"
#include "cli/session.h"

namespace paceline {

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
  int (*run)(const Settings& settings, Session& session);  // the exit code
};

std::span<const CommandDef> command_table();
// Throws UsageError with a suggestion for an unknown name, and with the way that exists here for
// another program's command, whose first argument is `argument`.
const CommandDef& find_command(std::string_view name, std::string_view argument = {});

// Each is in a file of its own in this folder.
int run_generate(const Settings& settings, Session& session);
int run_chat(const Settings& settings, Session& session);
int run_classify(const Settings& settings, Session& session);
int run_decide(const Settings& settings, Session& session);
int run_score(const Settings& settings, Session& session);
int run_embed(const Settings& settings, Session& session);
int run_render(const Settings& settings, Session& session);
int run_tokenize(const Settings& settings, Session& session);
int run_detokenize(const Settings& settings, Session& session);
int run_grammar(const Settings& settings, Session& session);
int run_perplexity(const Settings& settings, Session& session);
int run_inspect(const Settings& settings, Session& session);
int run_list(const Settings& settings, Session& session);
int run_bench(const Settings& settings, Session& session);
int run_batch(const Settings& settings, Session& session);
int run_serve(const Settings& settings, Session& session);
int run_quantize(const Settings& settings, Session& session);
int run_trace(const Settings& settings, Session& session);
int run_convert(const Settings& settings, Session& session);
int run_train(const Settings& settings, Session& session);
int run_adapter(const Settings& settings, Session& session);
int run_fuse(const Settings& settings, Session& session);

}  // namespace paceline
