"""Mutants: what is changed and what is not, that they keep their names, and the verdict on a module."""
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
        self.assertEqual(changes("x = a1 + 0x1f;", "constant"), [])

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
        self.assertEqual(changes("{\n  if (a) {\n    b();\n  }\n}", "drop_statement"), [";"])

    def test_comments_literals_and_checks_are_left_alone(self):
        for source in ("// x = a < 1;", '  log("a < 1");', "/* a < 1\n a < 2 */", "#if a < 1", '  PL_CHECK(a < 1 &&\n b, "");',
                       'x = R"(a < "1")";', "x = ' < ';"):
            found = [mutant for mutant in mutants_of("a.cc", source + "\n") if mutant.operator != "drop_statement"]
            self.assertEqual(found, [], source)

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
    """Its tests notice whatever changes a relation."""

    def verdict(self, _module, mutant):
        return "caught" if mutant.operator == "relational" else "survived"


class Verdict(unittest.TestCase):
    def judge(self, source, equivalents, least):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            tally, survivors = mutants.judge(FakeWorkshop(), "kv", mutants_of("a.cc", source), equivalents)
            below = mutants.report({"kv": tally}, least)
        return tally, survivors, below, printed.getvalue()

    def test_survivors_are_shown_and_too_many_fail(self):
        source = "return a < b;\nreturn c < d;\nreturn e && f;\n"  # two relations; && to ||, and a term less
        tally, survivors, below, printed = self.judge(source, {}, least=51)
        self.assertEqual(tally.counts, {"caught": 2, "survived": 2, "equivalent": 0, "invalid": 0})
        self.assertEqual([mutant.operator for mutant in survivors], ["drop_term", "logic"])
        self.assertEqual(below, ["kv"])
        self.assertIn("a.cc:3  logic\n  - return e && f;\n  + return e || f;\n", printed)
        self.assertEqual(self.judge(source, {}, least=50)[2], [])

    def test_what_is_listed_with_a_reason_is_not_tried(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("[[equivalent]]\nfile = 'a.cc'\noperator = 'logic'\nbefore = 'return e && f;'\nafter = 'return e || f;'\n"
                       "reason = 'e is f'\n")
            file.flush()
            equivalents = mutants.known_equivalents(file.name)
        tally, survivors, _, _ = self.judge("\nreturn e && f;\n", equivalents, least=95)
        self.assertEqual(tally.counts["equivalent"], 1)
        self.assertEqual([mutant.operator for mutant in survivors], ["drop_term"])

    def test_an_entry_without_a_reason_is_refused(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("[[equivalent]]\nfile = 'a'\noperator = 'logic'\nbefore = 'x'\nafter = 'y'\nreason = ' '\n")
            file.flush()
            with self.assertRaises(SystemExit):
                mutants.known_equivalents(file.name)


if __name__ == "__main__":
    unittest.main()
