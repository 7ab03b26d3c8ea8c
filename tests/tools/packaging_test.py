"""The man page and the completions, made from a small interface whose texts need quoting everywhere."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import cli_options  # noqa: E402
import make_completions  # noqa: E402
import make_man_page  # noqa: E402

HELP = """Runs language models. On CPUs.
Usage: paceline [OPTIONS] SUBCOMMAND

Options:
  -h,--help                   Print this

Subcommands:
  generate                    Continues a prompt
  score                       Gives log-probabilities, teacher-forced,
                              token by token
"""
DUMP = r"""
{"command": "", "flags": ["--version"], "env": "", "help": "Print the version.", "placeholder": "", "value": "none", "choices": []}
{"command": "generate", "flags": ["-m", "--model"], "env": "PACELINE_MODEL", "help": "Model directory.", "placeholder": "MODEL", "value": "file", "choices": []}
{"command": "generate", "flags": ["--stop"], "env": "", "help": "Don't go on: [text] \\ 'x'. Repeatable.", "placeholder": "TEXT", "value": "text", "choices": []}
{"command": "generate", "flags": ["--ignore-eos"], "env": "PACELINE_IGNORE_EOS", "help": ".5 of it", "placeholder": "", "value": "none", "choices": []}
{"command": "generate", "flags": ["--dtype"], "env": "", "help": "Type.", "placeholder": "TYPE", "value": "choice", "choices": ["auto", "float16", "float32"]}
{"command": "generate", "flags": ["--formats"], "env": "", "help": "Formats.", "placeholder": "FORMAT,...", "value": "choices", "choices": ["q4", "q8", "bf16"]}
{"command": "generate", "flags": ["-o", "--output"], "env": "", "help": "Directory.", "placeholder": "DIR", "value": "directory", "choices": []}
{"command": "score", "flags": ["-m", "--model"], "env": "PACELINE_MODEL", "help": "Model directory.", "placeholder": "MODEL", "value": "file", "choices": []}
"""
BINARY = """#!/bin/sh
case $1 in
--help) cat <<'END'
{help}END
;;
--version) echo "paceline 0.1.0 (abc)"; echo more ;;
--dump-options) cat <<'END'
{dump}END
;;
*) exit 2 ;;
esac
"""


class PackagingTest(unittest.TestCase):
    def setUp(self):
        self.directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.binary = self.directory / "paceline"
        self.binary.write_text(BINARY.format(help=HELP, dump=DUMP))
        self.binary.chmod(0o755)
        self.interface = cli_options.read_interface(self.binary)

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def complete(self, *words):
        script = self.write("paceline.bash", make_completions.bash(self.interface))
        quoted = " ".join(f"'{w}'" for w in ("paceline", *words))
        code = f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _paceline; echo ${{COMPREPLY[*]}}"
        done = subprocess.run(["bash", "-uc", code], capture_output=True, text=True, check=True, cwd=self.directory)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_interface_is_read(self):
        self.assertEqual(self.interface.version, "paceline 0.1.0 (abc)")
        self.assertEqual(self.interface.summary, "Runs language models. On CPUs.")
        self.assertEqual(self.interface.commands["score"],
                         "Gives log-probabilities, teacher-forced, token by token")
        self.assertEqual([o.flags for o in self.interface.common()], [("-m", "--model")])

    def test_command_without_description_is_an_error(self):
        self.binary.write_text(BINARY.format(help=HELP.replace("generate ", "generat "), dump=DUMP))
        with self.assertRaisesRegex(SystemExit, "generate"):
            cli_options.read_interface(self.binary)

    def test_failing_binary_is_an_error(self):
        self.binary.write_text("#!/bin/sh\necho broken >&2; exit 1\n")
        with self.assertRaisesRegex(SystemExit, "broken"):
            cli_options.read_interface(self.binary)

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.complete(""), ["generate", "score", "--version"])
        self.assertEqual(self.complete("ge"), ["generate"])
        self.assertEqual(self.complete("generate", "--"), ["--model", "--stop", "--ignore-eos", "--dtype", "--formats", "--output"])
        self.assertEqual(self.complete("score", "-"), ["-m", "--model"])
        self.assertEqual(self.complete("generate", "--stop", "-"), [])
        self.assertEqual(self.complete("generate", "--ignore-eos", "--s"), ["--stop"])

    def test_bash_completes_values(self):
        (self.directory / "weights").mkdir()
        self.write("words.txt", "")
        self.assertEqual(self.complete("generate", "--dtype", ""), ["auto", "float16", "float32"])
        self.assertEqual(self.complete("generate", "--dtype", "fl"), ["float16", "float32"])
        self.assertEqual(self.complete("generate", "--dtype", "=", "fl"), ["float16", "float32"])
        self.assertEqual(self.complete("generate", "--dtype", "="), ["auto", "float16", "float32"])
        self.assertEqual(self.complete("generate", "--formats", "q"), ["q4", "q8"])
        self.assertEqual(self.complete("generate", "--formats", "bf16,q"), ["bf16,q4", "bf16,q8"])
        self.assertEqual(sorted(self.complete("generate", "-m", "w")), ["weights", "words.txt"])
        self.assertEqual(self.complete("generate", "-o", "w"), ["weights"])
        self.assertEqual(self.complete("generate", "--stop", "w"), [])
        self.assertEqual(sorted(self.complete("generate", "w")), ["weights", "words.txt"])

    def test_zsh_completions_parse(self):
        text = make_completions.zsh(self.interface)
        self.assertIn(r"'--stop[Don'\''t go on\: \[text\] \\ '\''x'\'']:TEXT:'", text)
        self.assertIn("'(-m --model)'{-m,--model}'[Model directory]:MODEL:_files'", text)
        self.assertIn("'--dtype[Type]:TYPE:(auto float16 float32)'", text)
        self.assertIn("'--formats[Formats]:FORMAT,...:_sequence compadd - q4 q8 bf16'", text)
        self.assertIn("'(-o --output)'{-o,--output}'[Directory]:DIR:_files -/'", text)
        if shutil.which("zsh"):
            subprocess.run(["zsh", "-n", self.write("_paceline", text)], check=True)
        else:
            # The quoting rules needed here are those of any POSIX shell; only `->` and `[` differ in meaning.
            subprocess.run(["bash", "-n", self.write("_paceline", text)], check=True)

    def test_fish_completions(self):
        text = make_completions.fish(self.interface)
        self.assertIn("complete -c paceline -n '__fish_seen_subcommand_from generate' -s m -l model -r -F "
                      "-d 'Model directory'", text)
        self.assertIn(r"-l stop -x -d 'Don\'t go on: [text] \\ \'x\''", text)
        self.assertIn("-l dtype -x -a 'auto float16 float32' -d 'Type'", text)
        self.assertIn("-s o -l output -x -a '(__fish_complete_directories)' -d 'Directory'", text)
        if shutil.which("fish"):
            subprocess.run(["fish", "--no-execute", self.write("paceline.fish", text)], check=True)

    def test_man_page(self):
        text = make_man_page.man_page(self.interface)
        self.assertIn("paceline \\- Runs language models. On CPUs\n", text)
        self.assertEqual(text.count("Model directory."), 1)
        self.assertIn("\\fB\\-m\\fR, \\fB\\-\\-model\\fR \\fIMODEL\\fR\n", text)
        self.assertIn(".SH OPTIONS OF GENERATE\n", text)
        self.assertNotIn(".SH OPTIONS OF SCORE\n", text)
        self.assertIn("\\fB\\-\\-ignore\\-eos\\fR\n\\&.5 of it\n", text)
        self.assertIn("Don't go on: [text] \\e 'x'.", text)
        if shutil.which("man"):
            page = self.write("paceline.1", text)
            done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")
            self.assertIn("PACELINE_MODEL", done.stdout)


if __name__ == "__main__":
    unittest.main()
