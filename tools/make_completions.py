#!/usr/bin/env python3
"""Writes completions for bash, zsh and fish from the binary's description of itself.

Usage: make_completions.py BINARY DIRECTORY    (writes paceline.bash, _paceline, paceline.fish)
"""
import sys
from pathlib import Path

import cli_options


def flags_of(options):
    return [flag for option in options for flag in option.flags]


def first_sentence(text):
    return text.split("\n")[0].split(". ")[0].rstrip(".")


def bash_values(option):
    """The completion of an option's value; none for a text."""
    choices = f"compgen -W '{' '.join(option.choices)}'"
    return {"file": "_paceline_names -f", "directory": "_paceline_names -d",
            "choice": f'mapfile -t COMPREPLY < <({choices} -- "$current")',
            # The text before the last comma is kept.
            "choices": f'mapfile -t COMPREPLY < <({choices} -P "${{current%"${{current##*,}}"}}" -- "${{current##*,}}")',
            "text": ":"}[option.value]


def bash(interface):
    commands = "|".join(interface.commands)
    cases = []
    for command, options in interface.options.items():
        for option in options:
            if option.takes_value:
                patterns = "|".join(f"{command}:{flag}" for flag in option.flags)
                cases.append(f"    {patterns}) {bash_values(option)} && return ;;")
    words = "\n".join(f"    {command}) words='{' '.join(flags_of(options))}' ;;"
                      for command, options in interface.options.items() if command)
    top = " ".join([*interface.commands, *flags_of(interface.options[""])])
    return f"""# bash completion for paceline, generated from `paceline --dump-options`
# -f: files, -d: directories
_paceline_names() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "${{COMP_WORDS[COMP_CWORD]#=}}")
}}
_paceline() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= words i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
    {commands}) command=${{COMP_WORDS[i]}} && break ;;
    esac
  done
  COMPREPLY=()
  # "--option=value" comes as three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case $command:$previous in
{chr(10).join(cases)}
  esac
  case $command in
{words}
    *) words='{top}' ;;
  esac
  if [[ -z $command || $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  else
    _paceline_names -f
  fi
}}
complete -F _paceline paceline
"""


def zsh_quote(text):
    return text.replace("'", "'\\''")


def zsh_spec(option):
    """One _arguments line: the flags of an option exclude each other."""
    text = first_sentence(option.help)
    for special in "\\[]:":
        text = text.replace(special, "\\" + special)
    placeholder = option.placeholder.replace(":", "\\:")
    flags = option.flags
    names = f"({' '.join(flags)})'{{{','.join(flags)}}}'" if len(flags) > 1 else flags[0]
    values = {"none": "", "text": f":{placeholder}:", "file": f":{placeholder}:_files",
              "directory": f":{placeholder}:_files -/", "choice": f":{placeholder}:({' '.join(option.choices)})",
              "choices": f":{placeholder}:_sequence compadd - {' '.join(option.choices)}"}
    value = values[option.value]
    return f"'{names}[{zsh_quote(text)}]{value}'"


def zsh(interface):
    commands = "\n".join(f"    '{name}:{zsh_quote(text)}'" for name, text in interface.commands.items())

    def arguments(options):
        return " \\\n        ".join(zsh_spec(o) for o in options)

    cases = "\n".join(f"    {command})\n      _arguments -s \\\n        {arguments(options)} '*:file:_files' ;;"
                      for command, options in interface.options.items() if command)
    top = "".join(f" \\\n    {zsh_spec(o)}" for o in interface.options[""])
    return f"""#compdef paceline
# zsh completion for paceline, generated from `paceline --dump-options`
_paceline() {{
  local curcontext=$curcontext state line
  local -a commands
  commands=(
{commands}
  )
  _arguments -C{top} '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe -t commands command commands ;;
    argument)
    case $words[1] in
{cases}
    esac ;;
  esac
}}
_paceline "$@"
"""


def fish_quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_option(condition, option):
    parts = ["complete -c paceline", f"-n {fish_quote(condition)}"]
    for flag in option.flags:
        if flag.startswith("--"):
            parts.append(f"-l {flag[2:]}")
        else:
            parts.append(f"-{'s' if len(flag) == 2 else 'o'} {flag[1:]}")
    if option.value in ("choice", "choices"):
        parts.append(f"-x -a {fish_quote(' '.join(option.choices))}")
    elif option.value == "directory":
        parts.append("-x -a '(__fish_complete_directories)'")
    elif option.value == "file":
        parts.append("-r -F")
    elif option.value == "text":
        parts.append("-x")
    return " ".join([*parts, f"-d {fish_quote(first_sentence(option.help))}"])


def fish(interface):
    lines = ["# fish completion for paceline, generated from `paceline --dump-options`"]
    for command, summary in interface.commands.items():
        lines.append(f"complete -c paceline -f -n __fish_use_subcommand -a {command} -d {fish_quote(summary)}")
    for command, options in interface.options.items():
        condition = f"__fish_seen_subcommand_from {command}" if command else "__fish_use_subcommand"
        lines += [fish_option(condition, option) for option in options]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    described = cli_options.read_interface(sys.argv[1])
    directory = Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    for name, make in [("paceline.bash", bash), ("_paceline", zsh), ("paceline.fish", fish)]:
        (directory / name).write_text(make(described), encoding="utf-8")
