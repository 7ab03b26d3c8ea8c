#!/usr/bin/env python3
"""Writes the man page from the binary's description of itself.

Usage: make_man_page.py BINARY paceline.1
"""
import sys
from pathlib import Path

import cli_options

EXIT_STATUS = [("0", "Success."), ("1", "The work failed; the message on standard error says why."),
               ("2", "Bad usage: an unknown command, option or value."), ("70", "The engine of the server failed."),
               ("130", "Interrupted by Ctrl-C (143: by SIGTERM).")]


def escape(text):
    """Plain text as roff: no escapes, no hyphenation, no line that reads as a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.splitlines())


def option_entry(option):
    flags = ", ".join(f"\\fB{escape(f)}\\fR" for f in option.flags)
    value = f" \\fI{escape(option.placeholder)}\\fR" if option.takes_value else ""
    env = f"\nEnvironment: \\fB{escape(option.env)}\\fR." if option.env else ""
    return f".TP\n{flags}{value}\n{escape(option.help)}{env}"


def man_page(interface):
    common = interface.common()
    lines = [f'.TH PACELINE 1 "" "{escape(interface.version)}" "User Commands"',
             ".SH NAME", f"paceline \\- {escape(interface.summary.rstrip('.'))}",
             ".SH SYNOPSIS", ".B paceline", "\\fIcommand\\fR [\\fIoption\\fR...]",
             ".SH COMMANDS"]
    for command, summary in interface.commands.items():
        lines += [".TP", f"\\fB{escape(command)}\\fR", escape(summary)]
    for title, options in [("OPTIONS", interface.options[""]), ("OPTIONS OF EVERY COMMAND", common)]:
        if options:
            lines += [f".SH {title}"] + [option_entry(o) for o in options]
    for command in interface.commands:
        own = [o for o in interface.options[command] if o not in common]
        if own:
            lines += [f'.SH OPTIONS OF {escape(command.upper())}'] + [option_entry(o) for o in own]
    lines += [".SH EXIT STATUS"]
    for code, meaning in EXIT_STATUS:
        lines += [".TP", code, escape(meaning)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    target = Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(man_page(cli_options.read_interface(sys.argv[1])), encoding="utf-8")
