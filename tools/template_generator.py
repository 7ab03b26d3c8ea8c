"""Random chat templates for compare_templates.py: every statement, filter, test and method, in odd company."""

import random

STRINGS = ["'abc'", "'a b  c'", "''", "' x y '", "'Hello World'", "'h\u00e9llo w\u00f6rld'", "'\u4f60\u597d \u4e16\u754c'", "'1'",
           "'12.5'", "'-3'", "'a,b,,c'", "'line1\\nline2\\n\\nline4'", "\"it's\"", "'A'", "'abcabc'", "'%s-%s'", "'{}'",
           "'{0:>5}|{1}'", "'<b>&\"'", "'\u00df'", "'tab\\tx'", "'  lead'", "'trail  '", "'x' 'y'", "'\\u00e9\\x41\\101'"]
NUMBERS = ["0", "1", "2", "-1", "3", "10", "7", "2.5", "-0.5", "1e3", "1e-7", "100000000", "0.1", "3.0", "1_000", "0x1f"]
NAMES = ["s", "n", "f", "l", "d", "t", "b", "none_", "u", "msgs", "m", "nested", "e", "es", "words", "nums", "un"]
STRING_METHODS = """upper() lower() strip() lstrip() rstrip() strip('ab') split() split(',',1) split(None,1) rsplit(None,1)
 rsplit(',',1) splitlines() splitlines(true) startswith('a') startswith(('a','H')) endswith('c') replace('a','X')
 replace('a','X',1) replace('','-') title() capitalize() find('b') rfind('b') count('a') index('a') isdigit() isalpha()
 isspace() isupper() islower() istitle() isalnum() isnumeric() isascii() join(['x','y']) join('abc') zfill(6) ljust(8,'.')
 rjust(8) center(9,'*') removeprefix('a') removesuffix('c') partition(',') rpartition(',') swapcase() expandtabs(4)
 format(1,2) format('x') find('l',3) startswith('b',1) startswith('b',1,3) count('a',1) nope""".split()
OTHER_METHODS = """index(1) count(1) copy() append(1) pop() items() keys() values() get('a') get('zz') get('zz',5) a zz
 pop('a') update({}) nope""".split()
FILTERS = """upper lower trim length first last list join join(',') join('-','x') sort sort(reverse=true) sort(attribute='x')
 sort(case_sensitive=true) reverse reverse|list unique|list map('upper')|list map(attribute='x')|list
 map(attribute='x',default=0)|list map('length')|list map('int')|list select|list select('odd')|list reject('none')|list
 select('string')|list selectattr('x')|list selectattr('x','equalto',1)|list rejectattr('x','defined')|list
 selectattr('role','equalto','user')|list tojson tojson(indent=2) tojson(sort_keys=true) tojson(ensure_ascii=true)
 tojson(separators=(',',':')) default('D') default('D',true) d(1) int int(5) int(base=16) float float(2) round round(1)
 round(1,'ceil') round(0,'floor') abs string capitalize title replace('a','Z') replace('a','Z',1) center(20) indent
 indent(2,true) indent(2,blank=true) indent('>>') wordcount truncate(5) truncate(5,true) truncate(8,false,'..',0)
 batch(2)|list batch(2,'-')|list slice(2)|list slice(3,'f')|list dictsort dictsort(by='value') dictsort(reverse=true)
 items|list groupby('x') groupby('role')|list min max sum sum(start=2) sum(attribute='x') min(attribute='x') escape e safe
 urlencode format(1,2) attr('upper') count string|length forceescape list|length first|default('q')""".split()
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable",
         "callable", "odd", "even", "divisibleby(2)", "divisibleby 3", "true", "false", "lower", "upper", "eq(1)", "equalto 1",
         "ne 1", "gt 1", "ge 1", "lt 2", "le(2)", "in [1,'a']", "in 'abc'", "sameas none", "sameas true", "escaped",
         "not defined", "not none", "not string"]
BINARY = "+ - * / // % ** ~ == != < > <= >= and or + ~ ==".split() + ["in", "not in"]
TEXTS = ["", "a", " ", "\n", "  \n  ", "x y\n", "\n\n", "  ", "\u00e9", "{ ", "}", "# ", " %", "\t", "line\n   "]

# What the templates see beside messages and the rest.
VARIABLES = {
    "s": "Hello World", "n": 3, "f": 2.5, "l": [1, 2, "a", None, 2.0], "d": {"a": 1, "b": [1, 2], "c": {"x": 1}}, "t": True,
    "b": False, "none_": None, "e": "", "es": [], "words": ["b", "a", "C", "a"], "nums": [3, 1, 2, 2.5, -1],
    "nested": [[1, 2], [3, 4]], "un": "\u00fcn\u00ef \u4f60\u597d \U0001f600",
    "msgs": [{"role": "user", "content": "Hi", "x": 1}, {"role": "assistant", "content": " Yo\n", "x": 2},
             {"role": "user", "content": "bye", "x": 1}],
    "m": {"role": "user", "content": [{"type": "text", "text": "abc"}]}}


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pick = self.random.choice

    def template(self):
        return "".join(self.statement(0) for _ in range(self.random.randrange(1, 3)))

    def expression(self, depth=0):
        kind = self.random.random()
        pick, inner = self.pick, lambda: self.expression(depth + 1)
        if depth > 3 or kind < 0.25:
            return pick([pick(STRINGS), pick(NUMBERS), pick(NAMES), pick(NAMES), pick(["true", "false", "none", "True"])])
        if kind < 0.36:
            return f"{inner()} {pick(BINARY)} {inner()}"
        if kind < 0.50:
            return f"{self.postfix(depth + 1)}|{pick(FILTERS)}"
        if kind < 0.58:
            return f"({inner()})"
        if kind < 0.66:
            return f"({self.postfix(depth + 1)} is {pick(TESTS)})"
        if kind < 0.72:
            return f"({inner()} if {inner()}" + (f" else {inner()})" if self.random.random() < 0.8 else ")")
        if kind < 0.76:
            return f"(not {inner()})"
        if kind < 0.80:
            return "[" + ", ".join(self.expression(depth + 2) for _ in range(self.random.randrange(4))) + "]"
        if kind < 0.84:
            members = (f"{pick(STRINGS)}: {self.expression(depth + 2)}" for _ in range(self.random.randrange(3)))
            return "{" + ", ".join(members) + "}"
        if kind < 0.87:
            return "(" + "".join(self.expression(depth + 2) + ", " for _ in range(self.random.randrange(1, 3))) + ")"
        if kind < 0.89:
            return "-" + self.postfix(depth + 1)
        if kind < 0.92:
            return f"{inner()} {pick(['<', '==', '>=', 'in'])} {inner()} {pick(['<', '!=', '<='])} {inner()}"
        return self.postfix(depth)

    def postfix(self, depth):
        pick = self.pick
        base = pick([pick(NAMES), pick(NAMES), pick(STRINGS), f"({self.expression(depth + 1)})"])
        for _ in range(self.random.randrange(3)):
            kind = self.random.random()
            if kind < 0.3:
                base += "." + pick(STRING_METHODS)
            elif kind < 0.5:
                base += "." + pick(OTHER_METHODS)
            elif kind < 0.6:
                base += f"[{self.expression(depth + 2)}]"
            elif kind < 0.75:
                base += "[" + pick(["", "1", "-1", "0", "2"]) + ":" + pick(["", "1", "-1", "3"]) + pick(["", ":", ":2", ":-1"]) + "]"
            elif kind < 0.85:
                base += pick(["['a']", "[0]", "[-1]", ".x", ".role", ".content", "['zz']", ".0"])
            else:
                base += "|" + pick(FILTERS)
        return base

    def tag(self, inside):
        return self.pick(["{%", "{%", "{%-", "{%+"]) + f" {inside} " + self.pick(["%}", "%}", "-%}", "+%}"])

    def output(self, inside):
        return self.pick(["{{", "{{", "{{-"]) + f" {inside} " + self.pick(["}}", "}}", "-}}"])

    def text(self):
        return self.pick(TEXTS)

    def body(self, depth, in_loop=False):
        out = self.text() + "".join(self.statement(depth) for _ in range(self.random.randrange(1, 3)))
        if in_loop and self.random.random() < 0.5:
            attribute = self.pick(["index", "index0", "first", "last", "length", "revindex", "previtem", "nextitem", "depth",
                                   "cycle('a','b')", "changed(x)"])
            control = self.tag("if loop.index > 2") + self.tag(self.pick(["break", "continue"])) + self.tag("endif")
            out += self.pick([self.output("loop." + attribute), control, self.output("x"), self.output("i ~ k")])
        return out + self.text()

    def statement(self, depth):
        kind, pick, tag = self.random.random(), self.pick, self.tag
        if depth > 2 or kind < 0.42:
            return self.text() + self.output(self.expression()) + self.text()
        if kind < 0.52:
            elif_ = tag("elif " + self.expression(1)) + self.body(depth + 1) if self.random.random() < 0.3 else ""
            else_ = tag("else") + self.body(depth + 1) if self.random.random() < 0.5 else ""
            return tag("if " + self.expression(1)) + self.body(depth + 1) + elif_ + else_ + tag("endif")
        if kind < 0.68:
            return self.loop(depth)
        if kind < 0.76:
            return tag(f"set {pick(['s', 'n', 'v', 'w'])} = {self.expression(1)}")
        if kind < 0.80:
            return tag("set v" + pick(["", " | upper", " | trim", " | length"])) + self.body(depth + 1) + tag("endset")
        if kind < 0.84:
            return (tag(f"set ns = namespace(a=1, b={self.expression(2)})") + tag(f"set ns.{pick('ac')} = {self.expression(1)}") +
                    self.output("ns." + pick(["a", "b", "c", "zz"])))
        if kind < 0.89:
            return self.macro(depth)
        if kind < 0.91:
            name = pick(["upper", "trim", "replace('a','b')", "indent(2)"])
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

    def loop(self, depth):
        target = self.pick(["x", "x", "i", "k, v", "a, b"])
        items = self.pick([self.expression(1), "l", "msgs", "d", "d.items()", "range(4)", "range(1,6,2)", "words", "nums", "s",
                           "nested", "es"])
        condition = self.pick(["", "", " if " + self.pick(["x", "x is defined", "true", "n > 0", "x != 2"])])
        else_ = self.tag("else") + self.body(depth + 1) if self.random.random() < 0.3 else ""
        return (self.tag(f"for {target} in {items}{condition}") + self.body(depth + 1, in_loop=True) + else_ +
                self.tag("endfor"))

    def macro(self, depth):
        parameters = self.pick(["", "p", "p, q=2", "p, q=n, r=none"])
        extra = self.pick(["", "{{ p }}{{ q }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}"])
        macro = self.tag(f"macro mm({parameters})") + self.body(depth + 1) + extra + self.tag("endmacro")
        arguments = self.pick(["", "1", "1,2", "q=5", "p=3", "1,2,3,4", "zz=1", "*l", "**d"])
        call = self.tag("call mm(1)") + self.body(depth + 1) + self.tag("endcall")
        return macro + self.pick(["", self.output(f"mm({arguments})"), call])
