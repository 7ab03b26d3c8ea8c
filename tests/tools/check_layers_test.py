"""check_layers.py on small trees with one error each."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_layers  # noqa: E402


class CheckLayersTest(unittest.TestCase):
    LAYERS = "# order\nbase:\ntensor: base # views\nengine: base tensor\n"

    def errors(self, files, layers=LAYERS):
        with tempfile.TemporaryDirectory() as top:
            for name, text in {"src/LAYERS": layers, **files}.items():
                path = Path(top) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return [e.replace(f"{top}/", "") for e in check_layers.check(Path(top) / "src")]

    def expect(self, files, *fragments, layers=LAYERS):
        errors = self.errors(files, layers)
        self.assertEqual(len(errors), len(fragments), errors)
        for error, fragment in zip(errors, fragments):
            self.assertIn(fragment, error)

    def test_downward_includes_pass(self):
        self.expect({
            "src/base/a.h": "#include <vector>\n", "src/base/version.h.in": "",
            "src/tensor/t.h": '#include "base/a.h"\n#include "base/version.h"\n',
            "src/tensor/t.cc": '#include "tensor/t.h"\n#include <sys/mman.h>\n',
            "include/paceline/llm.h": '#include <string>\n#include "paceline/types.h"\n',
            "include/paceline/types.h": ""})

    def test_upward_include(self):
        self.expect({"src/base/a.h": '\n#include "engine/e.h"\n', "src/engine/e.h": ""},
                    "src/base/a.h:2: base may not include engine")

    def test_upward_include_in_angle_brackets(self):
        self.expect({"src/base/a.h": "#include <engine/e.h>\n", "src/engine/e.h": ""}, "base may not include engine")

    def test_unlisted_include(self):
        self.expect({"src/engine/e.h": '#include "tensor/t.h"\n', "src/tensor/t.h": ""},
                    "engine may not include tensor", layers="base:\ntensor: base\nengine: base\n")

    def test_commented_include_counts_for_nothing(self):
        self.expect({"src/base/a.h": '// #include "engine/e.h"\n/*\n#include "engine/e.h"\n*/\n'})

    def test_missing_file_and_module(self):
        self.expect({"src/tensor/t.h": '#include "base/no.h"\n#include "bse/a.h"\n'},
                    "t.h:1: no such file: src/base/no.h", "t.h:2: no such module: bse")

    def test_relative_includes(self):
        self.expect({"src/base/a.h": "", "src/base/b.h": '#include "a.h"\n#include "../base/a.h"\n'},
                    'write "base/a.h"', "not relative to the file")

    def test_directory_without_line(self):
        self.expect({"src/extra/x.h": ""}, "src/extra:1: directory without a line")

    def test_file_outside_modules(self):
        self.expect({"src/x.h": ""}, "src/x.h:1: sources belong into a module")

    def test_layer_names_later_module(self):
        self.expect({}, "src/LAYERS:1: base names tensor, which has no line above it", layers="base: tensor\ntensor:\n")

    def test_layer_syntax_and_duplicates(self):
        self.expect({}, "LAYERS:1: expected", "LAYERS:3: module base has a line already",
                    layers="base tensor\nbase:\nbase:\n")

    def test_constants_of_two_modules(self):
        self.expect({"src/base/a.h": "inline constexpr int kMost = 1;\n",
                     "src/base/b.h": "struct S {\n  static constexpr int kMost = 2;\n};\nconstexpr int kMost[] = {1};\n",
                     "src/tensor/t.h": "inline constexpr Type<int> kMost{2};\nconstexpr int kMost2 = half(kMost);\n",
                     "src/tensor/t.cc": "constexpr int kMost = 3;\n"},
                    "src/tensor/t.h:1: kMost is also defined in src/base/a.h:1, of base")

    def test_types_of_a_test_and_a_module(self):
        self.expect({"src/base/a.h": "struct Part {\n};\n",
                     "tests/base/b.h": "namespace paceline {\nstruct Part {\n};\n}\n",
                     "tests/base/c.h": "namespace paceline::testing {\nstruct Part {\n};\n}\n",
                     "tests/base/d.cc": "namespace paceline {\nnamespace {\nstruct Part {\n};\n}  // namespace\n}\n"},
                    "tests/base/b.h:2: Part is also defined in src/base/a.h:1, of base")

    def test_types_of_two_modules(self):
        self.expect({"src/base/a.h": "enum class Kind : uint8_t { one, two };\nstruct Part;\nclass Whole final {\n"
                                     "  struct Part {\n  };\n};\n",
                     "src/base/b.cc": "namespace {\nstruct Local {\n};\n}  // namespace\nstruct Seen {\n};\n",
                     "src/tensor/t.h": "struct Part {\n};\nstruct Kind {\n};\nstruct Whole<int> {\n};\n",
                     "src/tensor/t.cc": "struct Local {\n};\nclass Seen : public Part,\n             Kind {\n};\n",
                     "include/paceline/llm.h": "class Whole {\n};\n"},
                    "src/tensor/t.cc:3: Seen is also defined in src/base/b.cc:5, of base",
                    "src/tensor/t.h:3: Kind is also defined in src/base/a.h:1, of base",
                    "include/paceline/llm.h:1: Whole is also defined in src/base/a.h:3, of base")

    def test_types_of_two_namespaces(self):
        part = "namespace paceline::{} {{\n\nstruct Part {{\n}};\n\n}}  // namespace paceline::{}\n"
        plain = "namespace paceline {\nstruct Part {\n};\n}  // namespace paceline\n"
        self.expect({"src/base/a.h": part.format("one", "one") + plain, "src/tensor/t.h": part.format("two", "two"),
                     "src/engine/e.h": part.format("one", "one"), "include/paceline/p.h": part.format("three", "three")},
                    "src/engine/e.h:3: paceline::one::Part is also defined in src/base/a.h:3, of base")

    def test_clock_of_the_machine(self):
        self.expect({"src/base/time.cc": "auto a = std::chrono::steady_clock::now();\n",
                     "src/engine/e.cc": "auto a = Clock::now();  // not steady_clock::now()\n"
                                        "auto b = std::chrono::system_clock::now();\nauto c = time(nullptr);\n"},
                    "src/engine/e.cc:2: asks a clock of the machine", "src/engine/e.cc:3: asks a clock of the machine")

    def test_header_cycle(self):
        self.expect({"src/base/a.h": '#include "base/b.h"\n', "src/base/b.h": '#include "base/c.h"\n',
                     "src/base/c.h": '#include "base/a.h"\n'}, "src/base/c.h:1: include cycle: a.h -> b.h -> c.h -> a.h")

    def test_public_header_includes_source(self):
        self.expect({"include/paceline/llm.h": '#include "base/a.h"\n', "src/base/a.h": ""},
                    "include/paceline/llm.h:1: a public header includes nothing from src/")

    def test_public_header_counts_as_the_module_that_implements_it(self):
        self.expect({"include/paceline/run.h": "", "src/engine/run.cc": '#include "paceline/run.h"\n',
                     "src/base/run.cc": "", "src/base/a.cc": '#include "paceline/run.h"\n'},
                    "src/base/a.cc:1: base may not include paceline/run.h, which engine implements")
        self.expect({"include/paceline/run.h": "", "src/engine/run.h": '#include "paceline/run.h"\n',
                     "src/engine/run.cc": '#include "engine/run.h"\n', "src/base/a.cc": '#include "paceline/run.h"\n'},
                    "src/base/a.cc:1: base may not include paceline/run.h, which engine implements")

    def test_source_includes_missing_public_header(self):
        self.expect({"src/engine/e.cc": '#include "paceline/no.h"\n'}, "no such public header")

    THREE = "base:\ntensor: base\nengine: tensor\n"
    CHAIN = {"src/base/a.h": "", "src/tensor/t.h": '#include "base/a.h"\n'}

    def test_module_that_comes_along_is_named(self):
        self.expect({**self.CHAIN, "src/engine/e.cc": '#include <vector>\n#include "tensor/t.h"\n'},
                    "src/engine/e.cc:2: engine sees base through base/a.h <- tensor/t.h", layers=self.THREE)

    def test_module_that_comes_along_two_headers_down(self):
        self.expect({**self.CHAIN, "src/engine/e.h": '#include "tensor/u.h"\n',
                     "src/tensor/u.h": '#include "tensor/t.h"\n'},
                    "engine sees base through base/a.h <- tensor/t.h <- tensor/u.h", layers=self.THREE)

    def test_source_behind_a_header_brings_nothing(self):
        self.expect({"src/base/a.h": "", "src/tensor/t.h": "", "src/tensor/t.cc": '#include "base/a.h"\n',
                     "src/engine/e.cc": '#include "tensor/t.h"\n'}, layers=self.THREE)

    def test_parentheses_allow_what_comes_along_and_no_include(self):
        layers = "base:\ntensor: base\nengine: tensor (base)\n"
        self.expect({**self.CHAIN, "src/engine/e.cc": '#include "tensor/t.h"\n'}, layers=layers)
        self.expect({**self.CHAIN, "src/engine/e.cc": '#include "tensor/t.h"\n#include "base/a.h"\n'},
                    "e.cc:2: engine may not include base", layers=layers)

    def test_parentheses_that_nothing_needs(self):
        self.expect({"src/base/a.h": ""}, "src/LAYERS:3: engine sees nothing of base",
                    layers="base:\ntensor: base\nengine: tensor (base)\n")


if __name__ == "__main__":
    unittest.main()
