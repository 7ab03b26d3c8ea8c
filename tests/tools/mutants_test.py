"""Mutants: the changes that are made, stable names, and the verdict on a module."""
import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import mutants  # noqa: E402
from mutations import mutants_of  # noqa: E402


def changes(source, operator):
    return [mutant.after for mutant in mutants_of("a.cc", source + "\n") if mutant.operator == operator]


class Operators(unittest.TestCase):
    def test_relations_move_by_their_border(self):
        self.assertEqual(changes("x = a < b;", "relational"), ["x = a <= b;"])
        self.assertEqual(changes("x = a >= b;", "relational"), ["x = a > b;"])
        self.assertEqual(changes("x = a == b;", "relational"), ["x = a != b;"])
        self.assertEqual(changes("std::vector<int> v;", "relational"), [])
        self.assertEqual(changes("if (a.x != b.x) return a.x < b.x;", "relational"), ["if (a.x == b.x) return a.x < b.x;"])
        self.assertEqual(len(changes("if (a.x != b.x) return a.y < b.x;", "relational")), 2)

    def test_sums_and_conjunctions_change_sign_and_lose_a_term(self):
        self.assertEqual(changes("x = f(a + b - c);", "plus_minus"), ["x = f(a - b - c);", "x = f(a + b + c);"])
        self.assertEqual(changes("x = f(a + b(c, 1) - d);", "drop_term"), ["x = f(a - d);", "x = f(a + b(c, 1));"])
        self.assertEqual(changes("x += 2;", "plus_minus"), ["x -= 2;"])
        self.assertEqual(changes("x = a && b || c;", "logic"), ["x = a || b || c;", "x = a && b && c;"])
        self.assertEqual(changes("x = a && (b > 1);", "drop_term"), ["x = a;"])
        self.assertEqual(changes("x = a &&\n    b;\ny = 1;", "drop_term"), ["x = a ;"])

    def test_conditions_are_negated_once(self):
        self.assertEqual(changes("  if (a < b) return;", "negate"), ["if (!(a < b)) return;"])
        self.assertEqual(changes("  if (!a) return;", "negate"), ["if (a) return;"])
        self.assertEqual(changes("  if (a == b) return;", "negate"), [])

    def test_constants_move_by_one_in_both_directions(self):
        self.assertEqual(changes("x = 2;", "constant"), ["x = 3;", "x = 1;"])
        self.assertEqual(changes("x = 0;", "constant"), ["x = 1;"])
        self.assertEqual(changes("x = 1.5f;", "constant"), ["x = 3.0f;"])
        self.assertEqual(changes("x = true;", "constant"), ["x = false;"])
        self.assertEqual(changes("x = a1 + 0x1f + 1e-3 + 0x1p-4;", "constant"), [])

    def test_limits_and_rounding_are_swapped(self):
        self.assertEqual(changes("x = std::min(a, b);", "min_max"), ["x = std::max(a, b);"])
        self.assertEqual(changes("x = std::min_element(a, b);", "min_max"), [])
        self.assertEqual(changes("x = std::ceil(a);", "rounding"), ["x = std::floor(a);"])
        self.assertEqual(changes("x = divide_up(f(a, b), c);", "rounding"), ["x = ((f(a, b)) / (c));"])

    def test_statements_are_dropped_and_declarations_stay(self):
        body = "void f() {\n  int64_t a = 1;\n  std::vector<int> v(3);\n  a = g(1,\n        2);\n  return;\n}"
        self.assertEqual(changes(body, "drop_statement"), [";", ";"])
        self.assertEqual(changes("{\n  if (a) return 1;\n}", "drop_statement"), [";"])
        self.assertEqual(changes("{\n  if (a) b();\n  else c();\n}", "drop_statement"), [])
        self.assertEqual(changes("{\n  A(int a) : a_(a) {}\n  int b();\n  c(d);\n}", "drop_statement"), [";"])
        self.assertEqual(changes("{\n  if (a) {\n    b();\n  }\n}", "drop_statement"), [";"])

    def test_comments_literals_and_checks_are_left_alone(self):
        for source in ("// x = a < 1;", '  log("a < 1");', "/* a < 1\n a < 2 */", "#if a < 1", '  PL_CHECK(a < 1 &&\n b, "");',
                       'x = R"(a < "1")";', "x = ' < ';", "void A::check_integrity(int a) const {\n  if (a < 1) b();\n}"):
            found = [mutant for mutant in mutants_of("a.cc", source + "\n") if mutant.operator != "drop_statement"]
            self.assertEqual(found, [], source)

    def test_room_is_left_alone(self):
        self.assertEqual(mutants_of("a.cc", "{\n  a.reserve(b + max(c, 1));\n  if (d < e) a->f().reserve(2);\n}\n"), [])
        self.assertNotEqual(mutants_of("a.cc", "{\n  cache.reserve(sequence, 1);\n}\n"), [])

    def test_mutants_that_look_the_same_are_numbered(self):
        found = mutants_of("a.cc", "return a < b;\nreturn c < d;\nreturn a < b;\n")
        self.assertEqual([mutant.nth for mutant in found], [0, 0, 1])

    def test_lines_keep_their_numbers(self):
        source = "{\n  f(a,\n    b);\n  x = a &&\n      b;\n}\n"
        for mutant in mutants_of("a.cc", source):
            self.assertEqual(mutant.apply(source).count("\n"), source.count("\n"), mutant)


class Choice(unittest.TestCase):
    SOURCE = "".join(f"x = a{i} < {i};\n" for i in range(100))

    def test_the_same_mutants_are_chosen_when_lines_move(self):
        chosen = mutants.choose(mutants_of("a.cc", self.SOURCE), seed=3, count=20)
        moved = mutants.choose(mutants_of("a.cc", "\n// one more\n" + self.SOURCE), seed=3, count=20)
        self.assertEqual([mutant.key for mutant in chosen], [mutant.key for mutant in moved])
        other = mutants.choose(mutants_of("a.cc", self.SOURCE), seed=4, count=20)
        self.assertNotEqual({mutant.key for mutant in chosen}, {mutant.key for mutant in other})

    def test_parts_are_everything_once(self):
        every = mutants.choose(mutants_of("a.cc", self.SOURCE), seed=1, count=0)
        parts = [mutant for k in range(1, 8) for mutant in mutants.part_of(every, f"{k}/7")]
        self.assertCountEqual(parts, every)
        self.assertEqual(len(every), len(set(every)))
        with self.assertRaises(SystemExit):
            mutants.part_of(every, "8/7")


class FakeWorkshop:
    """Its tests notice whatever changes one of these operators' mutants."""

    def __init__(self, noticed=("relational",)):
        self.noticed = noticed
        self.num_tried = 0

    def verdict(self, _module, mutant):
        self.num_tried += 1
        return "caught" if mutant.operator in self.noticed else "survived"


class Verdict(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.kept = Path(directory.name) / "below" / "verdicts.json"

    def judge(self, source, equivalents, least, workshop=None, again=False):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            tally = mutants.judge(workshop or FakeWorkshop(), "kv", mutants_of("a.cc", source), equivalents,
                                  mutants.Verdicts(self.kept), again)
            below = mutants.report({"kv": tally}, least)
        return tally, below, printed.getvalue()

    def test_survivors_are_shown_and_too_many_fail(self):
        source = "return a < b;\nreturn c < d;\nreturn e && f;\n"  # two relations; && to ||, and a term less
        tally, below, printed = self.judge(source, {}, least=51)
        self.assertEqual(tally.counts, {"caught": 2, "survived": 2, "equivalent": 0, "invalid": 0})
        self.assertEqual(below, ["kv"])
        self.assertIn("a.cc:3  drop_term\n  - return e && f;\n  + return e;\n", printed)
        self.assertIn("a.cc:3  logic\n  - return e && f;\n  + return e || f;\n", printed)
        self.assertEqual(self.judge(source, {}, least=50)[1], [])

    def test_again_tries_survivors_and_those_without_a_verdict(self):
        source = "return a < b;\nreturn e && f;\n"
        self.judge(source, {}, least=95)
        workshop = FakeWorkshop(("logic",))
        tally, _, _ = self.judge(source + "return a < b;\n", {}, 95, workshop, again=True)
        self.assertEqual(workshop.num_tried, 3)
        self.assertEqual(tally.counts, {"caught": 2, "survived": 2, "equivalent": 0, "invalid": 0})
        workshop = FakeWorkshop()
        self.assertEqual(self.judge(source, {}, 95, workshop)[0].counts["caught"], 1)
        self.assertEqual(workshop.num_tried, 3)

    def test_what_is_listed_with_a_reason_is_not_tried(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("[[equivalent]]\nfile = 'a.cc'\noperator = 'logic'\nbefore = 'return e && f;'\nafter = 'return e || f;'\n"
                       "reason = 'e is f'\n")
            file.flush()
            equivalents = mutants.known_equivalents(file.name)
        tally, _, printed = self.judge("\nreturn e && f;\n", equivalents, least=95)
        self.assertEqual(tally.counts, {"caught": 0, "survived": 1, "equivalent": 1, "invalid": 0})
        self.assertIn("a.cc:2  drop_term", printed)

    def test_an_entry_without_a_reason_is_refused(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("[[equivalent]]\nfile = 'a'\noperator = 'logic'\nbefore = 'x'\nafter = 'y'\nreason = ' '\n")
            file.flush()
            with self.assertRaises(SystemExit):
                mutants.known_equivalents(file.name)


    def test_an_entry_that_is_there_twice_is_refused(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(2 * "[[equivalent]]\nfile = 'a'\noperator = 'logic'\nbefore = 'x'\nafter = 'y'\nreason = 'z'\n")
            file.flush()
            with self.assertRaisesRegex(SystemExit, "twice"):
                mutants.known_equivalents(file.name)

    def test_entries_whose_code_is_gone_are_stale(self):
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "a.cc").write_text("x = a < b;\n")
            fresh, gone = [("a.cc", "relational", "x = a < b;", "x = a <= b;"), ("b.cc", "logic", "x", "y")]
            changed = ("a.cc", "relational", "x = a > b;", "x = a >= b;")
            self.assertEqual(mutants.stale_equivalents(Path(directory), [fresh, changed, gone]), [changed, gone])

    def test_no_entry_of_this_tree_is_stale(self):
        equivalents = mutants.known_equivalents(mutants.ROOT / "tools" / "mutants_equivalent.toml")
        self.assertEqual(mutants.stale_equivalents(mutants.ROOT, equivalents), [])


class Commands(unittest.TestCase):
    COMPILE = ("/usr/bin/cmake -E env A=b /usr/bin/ccache /usr/bin/g++-12 -DX=\\\"y\\\" -I/src -O2 -fPIC -Wall -Werror -std=c++20 "
               "-Winvalid-pch -include /b/p.hxx -MD -MT o.o -MF o.o.d -o CMakeFiles/paceline_kv.dir/o.o -c /b/unity_0.cxx")
    LINK = ": && /usr/bin/c++ -O2 o.o -o tests/test_state libpaceline_kv.a /usr/lib/libfmt.so && :"

    def test_a_compile_command_loses_its_files_and_keeps_what_the_code_depends_on(self):
        words = mutants.command_words([self.LINK, self.COMPILE], r" -o CMakeFiles/paceline_kv\.dir/\S+\.o ")
        flags, header = mutants.flags_of(words)
        self.assertEqual(flags, ["/usr/bin/g++-12", '-DX="y"', "-I/src", "-fPIC", "-std=c++20", "-O1", "-w"])
        self.assertEqual(header, Path("/b/p.hxx"))

    def test_a_link_command_is_what_stands_between_the_shells_words(self):
        words = mutants.command_words([self.COMPILE, self.LINK], " -o tests/test_state ")
        self.assertEqual(words, self.LINK.split()[2:-2])

    def test_a_link_command_takes_no_archive_whole(self):
        words = self.LINK.split()[2:-2]
        whole = ["-Wl,--whole-archive", "/b/libpaceline_kv.a", "/b/libpaceline_base.a", "-Wl,--no-whole-archive"]
        self.assertEqual(mutants.without_whole_archives(words[:2] + whole + words[2:]), words)
        self.assertEqual(mutants.without_whole_archives(words), words)


if __name__ == "__main__":
    unittest.main()
