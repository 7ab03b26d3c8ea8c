// The program: arguments in, exit code out.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>
#include <optional>

#include "base/bus_error.h"
#include "base/processors.h"
#include "base/version.h"
#include "cli/help.h"
#include "cli/parent_watch.h"
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
  session.out().print(text);
  return 0;
}

// Warns of more threads than cores: the output would be the same, but threads would wait for each
// other.
void warn_of_threads(const Settings& settings, Session& session) {
  const auto num_usable = static_cast<int64_t>(allowed_processors().size());
  int64_t most = settings.load.num_threads;
  for (const int64_t threads : settings.bench.threads) most = std::max(most, threads);
  if (num_usable == 0 || most <= num_usable) return;
  session.print_note("warning: --threads {}: slower, because only {} cores are usable", most,
                     num_usable);
  if (settings.load.pin_threads) {
    session.print_note("warning: --pin-threads: no effect with more threads than cores");
  }
}

// `arguments` begin with the command's name.
int run_command(const CommandDef& command, const std::vector<std::string>& arguments,
                Session& session) {
  const bool is_alias = arguments[0] == command.alias;
  const ResolvedSettings resolved =
      resolve_settings(command, {arguments.begin() + 1, arguments.end()}, current_environment(),
                       is_alias ? command.alias_takes : std::string_view());
  if (resolved.settings.help_all) return print(session, whole_command_help(command));
  if (resolved.settings.help) return print(session, command_help(command));
  session.set_quiet(resolved.settings.quiet);
  session.set_error_codes(resolved.settings.error_codes);
  std::optional<ParentWatch> parent_watch;
  if (resolved.settings.stop_with_parent) parent_watch.emplace();
  for (const std::string& warning : resolved.warnings) session.print_note("warning: " + warning);
  warn_of_threads(resolved.settings, session);
  const int code = command.run(resolved.settings, session);
  session.out().flush();
  return code;
}

int dispatch(const std::vector<std::string>& arguments, Session& session) {
  if (arguments.empty()) {
    session.print_line(program_help());
    return kBadUsage;
  }
  const std::string& first = arguments[0];
  if (first == "--help" || first == "-h" || (first == "help" && arguments.size() == 1)) {
    return print(session, program_help());
  }
  if (first == "--version") return print(session, version_text());
  if (first == "--dump-options") return print(session, options_dump());
  if (first == "help") return print(session, command_help(find_command(arguments[1])));
  const CommandDef& command =
      find_command(first, arguments.size() > 1 ? arguments[1] : std::string_view());
  try {
    return run_command(command, arguments, session);
  } catch (const UsageError& error) {
    throw UsageError("{}\n(`paceline {} --help` lists the options)", error.what(), command.name);
  }
}

int exit_code_of(const std::vector<std::string>& arguments, Session& session) {
  try {
    return dispatch(arguments, session);
  } catch (const OutputClosed&) {
    return kFailed;
  } catch (const UsageError& error) {
    session.print_error(ErrorCode::invalid, error.what());
    return kBadUsage;
  } catch (const Error& error) {
    const bool is_interruption = session.interrupted() && error.code() == ErrorCode::cancelled;
    if (!is_interruption && !session.interrupt().is_ending()) {
      session.print_error(error.code(), error.what());
    }
    return session.exit_code(kFailed);
  } catch (const std::bad_alloc&) {
    session.print_error(ErrorCode::exhausted, "out of memory");
    return kFailed;
  }
}

// 0 done, 1 failed, 2 bad usage, 128 + signal interrupted.
int run_program(const std::vector<std::string>& arguments) try {
  Session session;
  const int code = exit_code_of(arguments, session);
  if (session.interrupted() && !session.interrupt().is_ending()) {
    session.out().flush();
    fmt::print(stderr, "{}", session.interrupt().line());
  }
  return code;
} catch (const Error& error) {
  fmt::print(stderr, "paceline: {}\n", error.what());  // no session could be made
  return kFailed;
}

}  // namespace
}  // namespace paceline

namespace {

// A file opened later must not take the descriptor of a closed standard stream; using that stream
// stays an error.
void occupy_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      [[maybe_unused]] const int opened =
          open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  constexpr int kSoftwareFailure = 70;  // sysexits.h; that of a failed engine
  paceline::exit_on_bus_error(kSoftwareFailure);
  std::signal(SIGPIPE, SIG_DFL);  // a closed pipe ends the program without a message
  return paceline::run_program({argv + 1, argv + argc});
}
