"""Random chat templates for compare_templates.py: every statement, filter, test and method, in odd combinations.

Not made is what Jinja answers by accident, or chat templates have no use for: constants sliced by what is no index
(Jinja fails when it reads the template), subscripts of a dict's view, complex numbers (a negative one to the power of a
fraction), and methods of what |escape and |safe gave: with Python it remains safe and escapes what is added to it.
"""

from template_expressions import ExpressionGenerator

TEXTS = ["", "a", " ", "\n", "  \n  ", "x y\n", "\n\n", "  ", "\u00e9", "{ ", "}", "# ", " %", "\t", "line\n   "]
ESCAPES = ["e", "escape", "safe", "forceescape"]

# Variables of the templates beside messages and the rest.
VARIABLES = {
    "s": "Hello World", "n": 3, "f": 2.5, "l": [1, 2, "a", None, 2.0], "d": {"a": 1, "b": [1, 2], "c": {"x": 1}}, "t": True,
    "b": False, "none_": None, "e": "", "es": [], "words": ["b", "a", "C", "a"], "nums": [3, 1, 2, 2.5, -1],
    "nested": [[1, 2], [3, 4]], "un": "\u00fcn\u00ef \u4f60\u597d \U0001f600",
    "msgs": [{"role": "user", "content": "Hi", "x": 1}, {"role": "assistant", "content": " Yo\n", "x": 2},
             {"role": "user", "content": "bye", "x": 1}],
    "m": {"role": "user", "content": [{"type": "text", "text": "abc"}]}}


class Generator(ExpressionGenerator):
    def __init__(self, seed):
        super().__init__(seed)

    def template(self):
        self.readable = []
        return "".join(self.statement(0) for _ in range(self.random.randrange(1, 4)))

    def tag(self, inside):
        return self.pick(["{%", "{%", "{%-", "{%+"]) + f" {inside} " + self.pick(["%}", "%}", "-%}", "+%}"])

    def output(self, inside):
        return self.pick(["{{", "{{", "{{-"]) + f" {inside} " + self.pick(["}}", "}}", "-}}"])

    def body(self, depth, in_loop=False):
        out = self.pick(TEXTS) + "".join(self.statement(depth) for _ in range(self.random.randrange(1, 3)))
        if in_loop and self.chance(0.5):
            attribute = self.pick(["index", "index0", "first", "last", "length", "revindex", "previtem", "nextitem", "depth",
                                   "cycle('a','b')", "changed(x)", "revindex0", "depth0"])
            control = self.tag("if loop.index > 2") + self.tag(self.pick(["break", "continue"])) + self.tag("endif")
            out += self.pick([self.output("loop." + attribute), control, self.output("x"), self.output("i ~ k")])
        return out + self.pick(TEXTS)

    def statement(self, depth):
        kind, pick, tag = self.random.random(), self.pick, self.tag
        if depth > 2 or kind < 0.38:
            escape = "|" + pick(ESCAPES) if self.chance(0.05) else ""
            return pick(TEXTS) + self.output(self.expression() + escape) + pick(TEXTS)
        if kind < 0.52:
            elif_ = tag("elif " + self.truth(1)) + self.body(depth + 1) if self.chance(0.3) else ""
            else_ = tag("else") + self.body(depth + 1) if self.chance(0.5) else ""
            return tag("if " + self.expression(1)) + self.body(depth + 1) + elif_ + else_ + tag("endif")
        if kind < 0.66:
            return self.loop(depth)
        if kind < 0.79:
            return self.assignment(depth)
        if kind < 0.83:
            return (tag(f"set ns = namespace(a=1, b={self.expression(2)})") + tag(f"set ns.{pick('ac')} = {self.expression(1)}") +
                    self.output("ns." + pick(["a", "b", "c", "zz"])))
        if kind < 0.89:
            return self.macro(depth)
        if kind < 0.91:
            name = pick(["upper", "trim", "replace('x','X')", "indent(2)", "trim|title"])
            return tag("filter " + name) + self.body(depth + 1) + tag("endfilter")
        if kind < 0.93:
            return tag(f"with q = {self.expression(1)}, w = 2") + self.body(depth + 1) + tag("endwith")
        if kind < 0.95:
            return "{#" + pick(["", "-", "+"]) + " comment " + pick(["", "-", "+"]) + "#}"
        if kind < 0.965:
            return tag("raw") + "{{ x }} {% if %}\n" + tag("endraw")
        if kind < 0.98:
            return tag("generation") + self.body(depth + 1) + tag("endgeneration")
        return tag("if " + self.expression(2)) + self.output(f"raise_exception({pick(['s', repr('bad')])})") + tag("endif")

    def assignment(self, depth):
        """A variable set, and read here and there from then on."""
        name = self.pick(["s", "n", "v", "w", "v"])
        self.readable.append(name)
        if self.chance(0.6):
            return self.tag(f"set {name} = {self.expression(1)}")
        filters = self.pick(["", " | upper", " | trim", " | length"])
        return self.tag(f"set {name}{filters}") + self.body(depth + 1) + self.tag("endset")

    def loop(self, depth):
        target = self.pick(["x", "x", "i", "k, v", "a, b"])
        items = self.pick([self.sequence(1), self.sequence(1), "l", "msgs", "d", "d.items()", "range(4)", "range(1,6,2)", "words", "nums",
                           "s", "nested", "es", self.expression(1)])
        if "," in target and self.chance(0.8):
            items = self.pick(["d.items()", "nested", "d|dictsort", "m|items", "l|batch(2)", "msgs|groupby('role')"])
        condition = self.pick(["", "", " if " + self.pick(["x", "x is defined", "true", "n > 0", "x != 2", "not x"])])
        else_ = self.tag("else") + self.body(depth + 1) if self.chance(0.3) else ""
        return self.tag(f"for {target} in {items}{condition}") + self.body(depth + 1, in_loop=True) + else_ + self.tag("endfor")

    def macro(self, depth):
        parameters = self.pick(["", "p", "p, q=2", "p, q=n, r=none"])
        extra = self.pick(["", "{{ p }}{{ q }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}"])
        macro = self.tag(f"macro mm({parameters})") + self.body(depth + 1) + extra + self.tag("endmacro")
        arguments = self.pick(["", "1", "1,2", "q=5", "p=3", "1,2,3,4", "zz=1", "*l", "**d"])
        call = self.tag("call mm(1)") + self.body(depth + 1) + self.tag("endcall")
        return macro + self.pick(["", self.output(f"mm({arguments})"), call])
