"""check_messages.py on small sources, and on ours."""
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
import check_messages  # noqa: E402


class CheckMessagesTest(unittest.TestCase):
    def lines(self, body):
        """The lines of a function's body, from 1, that are refused."""
        with tempfile.TemporaryDirectory() as top:
            (Path(top) / "a.cc").write_text("void f() {" + body.replace("\n", "\n  ") + "\n}\n")
            return [int(e.split(":")[1]) - 1 for e in check_messages.check(Path(top))]

    def test_what_is_compared_or_searched(self):
        for code in ('std::string(error.what()).find("queue") != npos;',
                     'if (std::string_view(e.what()) == "full") return;',
                     'if ("full" == std::string(e.what())) return;',
                     'if (std::string_view{error.what()}.starts_with("prompt: ")) return;',
                     'if (std::strcmp(e.what(), "full") == 0) return;',
                     'if (std::strstr(problem->what(), "full") != nullptr) return;',
                     'if (std::regex_search(e.what(), kFull)) return;'):
            self.assertEqual(self.lines("\n" + code), [1], code)

    def test_a_message_is_compared_or_searched(self):
        for code in ('if (error.message == "full") return;',
                     'if (error->message.starts_with("prompt")) return;',
                     'if (ending.error->message.find("x") != npos) return;',
                     'if (choice.error()->message != kFull) return;',
                     'return last_error_.message.substr(0, 3);'):
            self.assertEqual(self.lines("\n" + code), [1], code)

    def test_a_variable_that_is_a_message(self):
        self.assertEqual(self.lines('\nconst std::string_view text = error.what();'
                                    '\nconst std::string other = name;'
                                    '\nif (other == "a" || text.find("b") != npos) return;'), [3])
        self.assertEqual(self.lines('\nstd::string text(error.what());\nuse(text);\nif (text == kFull) return;'), [3])

    def test_a_parameter_that_is_a_message(self):
        code = ('}\nint code_of(const std::string& message) {\nif (message.starts_with("a")) return 1;\n}'
                '\nvoid g(const Json& message) {\nif (message.find("b")) return;')
        self.assertEqual(self.lines(code), [2])

    def test_a_variable_ends_with_its_function(self):
        self.assertEqual(self.lines('\nstd::string text = e.what();\n}\nvoid g(std::string text) {'
                                    '\nif (text == "a") return;'), [])

    def test_other_uses_pass(self):
        for code in ('throw Error(error.code(), fmt::format("{}: {}", name, error.what()));',
                     'if (error.code() == ErrorCode::invalid) return error.what();',
                     'if (!problem.message.empty()) log(error.message);',
                     '// if (error.message == "full")',
                     'log("error.what() == ");',
                     'const Json* content = message.find_value("content");',
                     'return {.code = error.code(), .message = error.what()};'):
            self.assertEqual(self.lines("\n" + code), [], code)

    def test_our_sources_pass(self):
        self.assertEqual(check_messages.check(TOP / "src"), [])


if __name__ == "__main__":
    unittest.main()
