#include "cli/program.h"

#include <fmt/format.h>

#include <new>

#include "base/version.h"
#include "cli/help.h"
#include "cli/resolve.h"
#include "cli/usage_error.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

std::string version_text() {
  std::string text = fmt::format("paceline {}", kVersion);
  if (!kGitDescribe.empty()) text += fmt::format(" ({})", kGitDescribe);
  return text + fmt::format("\n{}\n", kCompiler);
}

int print(Session& session, std::string_view text) {
  session.out().write(text);
  session.out().flush();
  return 0;
}

int run_command(const CommandDef& command, const std::vector<std::string>& arguments,
                Session& session) {
  const ResolvedSettings resolved = resolve_settings(command, arguments, current_environment());
  if (resolved.settings.help) return print(session, command_help(command));
  if (!resolved.settings.quiet) {
    for (const std::string& warning : resolved.warnings) session.say("warning: " + warning);
  }
  return command.run(resolved.settings, session);
}

int dispatch(const std::vector<std::string>& arguments, Session& session) {
  if (arguments.empty()) {
    session.say(program_help());
    return kBadUsage;
  }
  const std::string& first = arguments[0];
  if (first == "--help" || first == "-h" || (first == "help" && arguments.size() == 1)) {
    return print(session, program_help());
  }
  if (first == "--version") return print(session, version_text());
  if (first == "--dump-options") return print(session, options_dump());
  if (first == "help") return print(session, command_help(find_command(arguments[1])));
  const CommandDef& command = find_command(first);
  try {
    return run_command(command, {arguments.begin() + 1, arguments.end()}, session);
  } catch (const UsageError& error) {
    throw UsageError(
        fmt::format("{}\n(`paceline {} --help` lists the options)", error.what(), command.name));
  }
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
  Session session;
  try {
    return dispatch(arguments, session);
  } catch (const OutputClosed&) {
    return kFailed;
  } catch (const UsageError& error) {
    session.say_error(error.what());
    return kBadUsage;
  } catch (const Error& error) {
    session.say_error(error.what());
    return session.exit_code(kFailed);
  } catch (const std::bad_alloc&) {
    session.say_error("out of memory");
    return kFailed;
  }
}

}  // namespace paceline
