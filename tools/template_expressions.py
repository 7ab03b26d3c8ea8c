"""Random expressions of templates: most have the type that their context needs, so that they have a value."""

import random

STRINGS = ["'abc'", "'a b  c'", "''", "' x y '", "'Hello World'", "'h\u00e9llo w\u00f6rld'", "'\u4f60\u597d \u4e16\u754c'", "'1'",
           "'12.5'", "'-3'", "'a,b,,c'", "'line1\\nline2\\n\\nline4'", "\"it's\"", "'A'", "'abcabc'", "'%s-%s'", "'{}'",
           "'{0:>5}|{1}'", "'<b>&\"'", "'\u00df'", "'tab\\tx'", "'  lead'", "'trail  '", "'x' 'y'", "'\\u00e9\\x41\\101'",
           "'\u01c5\u0130\u03a3'", "'a\\r\\nb\\x0bc'", "'ab-cd'", "'x=1;y'"]
NUMBERS = ["0", "1", "2", "-1", "3", "10", "7", "2.5", "-0.5", "1e3", "1e-7", "100000000", "0.1", "3.0", "1_000", "0x1f", "0b101", "0o17"]
TEXT_NAMES, NUMBER_NAMES = ["s", "un", "e", "m.role", "msgs[0].content", "msgs[1]['content']", "words[1]"], ["n", "f", "d.a", "nums[2]", "l[0]"]
LIST_NAMES, MAPPING_NAMES = ["l", "words", "nums", "msgs", "nested", "es", "m.content", "d.b"], ["d", "m", "msgs[0]", "d.c", "m.content[0]"]
NAMES = ["s", "n", "f", "l", "d", "t", "b", "none_", "u", "msgs", "m", "nested", "e", "es", "words", "nums", "un"]
TEXT_METHODS = """upper() lower() strip() lstrip() rstrip() strip('ab') replace('a','X') replace('a','X',1) replace('','-') title()
 capitalize() join(['x','y']) join('abc') zfill(6) ljust(8,'.') rjust(8) center(9,'*') removeprefix('a') removesuffix('c')
 swapcase() expandtabs(4) casefold() strip(none) center(8)""".split()
STRING_METHODS = """split() split(',',1) split(None,1) rsplit(None,1) rsplit(',',1) splitlines() splitlines(true) startswith('a')
 startswith(('a','H')) endswith('c') find('b') rfind('b') count('a') index('a') isdigit() isalpha() isspace() isupper() islower()
 istitle() isalnum() isnumeric() isdecimal() isascii() isprintable() partition(',') rpartition(',') find('l',3) rindex('a')
 startswith('b',1) startswith('b',1,3) endswith('c',0,-1) count('a',1) nope""".split() + TEXT_METHODS
OTHER_METHODS = """index(1) count(1) copy() append(1) pop() items() keys() values() get('a') get('zz') get('zz',5) a zz
 pop('a') update({}) nope""".split()
# Never subscripted: the result for Python's views is accidental.
VIEWS = ("items()", "keys()", "values()")
TEXT_FILTERS = """upper lower trim capitalize title replace('a','Z') replace('a','Z',1) center(20) indent indent(2,true)
 indent(2,blank=true) indent('>>') truncate(5) truncate(5,true) truncate(8,false,'..',0) string urlencode
 default('D') reverse trim('a') tojson string|upper join('.')""".split()
NUMBER_FILTERS = ["int", "int(5)", "float", "float(2)", "round", "round(1)", "round(1,'ceil')", "round(0,'floor')", "abs", "default(7)",
                  "round(-1)", "round(2)|string|float", "int(base=16)"]
LIST_FILTERS = """list sort sort(reverse=true) sort(attribute='x') sort(case_sensitive=true) reverse|list unique|list
 map('upper')|list map(attribute='x')|list map(attribute='x',default=0)|list map('string')|list map('int')|list select|list
 select('odd')|list reject('none')|list select('string')|list selectattr('x')|list selectattr('x','equalto',1)|list
 rejectattr('x','defined')|list selectattr('role','equalto','user')|list batch(2)|list batch(2,'-')|list slice(2)|list
 slice(3,'f')|list groupby('x') groupby('role')|list map(attribute='role')|list map('default','q')|list select('in',[1,'a'])|list
 map(attribute=0)|list sort(attribute='role,x') reject('string')|list unique(true)|list map('length')|list""".split()
REDUCING_FILTERS = """length first last join join(',') join('-','x') min max sum sum(start=2) sum(attribute='x') min(attribute='x')
 count string|length first|default('q') tojson tojson(indent=2) tojson(separators=(',',':')) wordcount list|length
 join(', ',attribute='role')""".split()
MAPPING_FILTERS = """dictsort dictsort(by='value') dictsort(reverse=true) items|list tojson tojson(sort_keys=true) tojson(indent=2)
 list length string urlencode dictsort(false,'key')""".split()
OTHER_FILTERS = ["tojson(ensure_ascii=true)", "default('D',true)", "d(1)", "attr('upper')", "wordcount", "string", "items|list"]
FILTERS = TEXT_FILTERS + NUMBER_FILTERS + LIST_FILTERS + REDUCING_FILTERS + MAPPING_FILTERS + OTHER_FILTERS
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable",
         "callable", "odd", "even", "divisibleby(2)", "divisibleby 3", "true", "false", "lower", "upper", "eq(1)", "equalto 1",
         "ne 1", "gt 1", "ge 1", "lt 2", "le(2)", "in [1,'a']", "in 'abc'", "sameas none", "sameas true", "escaped",
         "not defined", "not none", "not string"]
SAFE_TESTS = TESTS[:12] + TESTS[-3:] + ["sameas none", "escaped", "eq(1)", "ne 1", "lower"]
BINARY = "+ - * / // ** ~ == != < > <= >= and or + ~ ==".split() + ["in", "not in"]


class ExpressionGenerator:
    """Deterministic for a `seed`. `wild`, from 0 to 1, is the rate of ignoring types."""

    def __init__(self, seed, wild=0.25):
        self.random = random.Random(seed)
        self.pick = self.random.choice
        self.wild = wild
        self.readable = []  # variables that the template set before

    def chance(self, probability):
        return self.random.random() < probability

    def expression(self, depth=0):
        if self.chance(self.wild):
            return self.any_of_any(depth)
        kind = self.pick([self.text, self.text, self.number, self.sequence, self.mapping, self.truth, self.either])
        return kind(depth)

    def either(self, depth):
        kind = self.pick([self.text, self.number, self.sequence, self.expression])
        if depth > 3:
            return self.name()
        choice = f"({kind(depth + 1)} if {self.truth(depth + 1)}" + (f" else {kind(depth + 1)})" if self.chance(0.8) else ")")
        return self.pick([choice, f"({self.expression(depth + 1)} {self.pick(['and', 'or'])} {self.expression(depth + 1)})"])

    def name(self):
        return self.pick(self.readable) if self.readable and self.chance(0.3) else self.pick(NAMES)

    def bounds(self):
        pick = self.pick
        return pick(["", "1", "-1", "0", "2", "n"]) + ":" + pick(["", "1", "-1", "3"]) + pick(["", "", ":", ":2", ":-1"])

    def text(self, depth):
        kind, pick = self.random.random(), self.pick
        if depth > 3 or kind < 0.3:
            return pick([pick(STRINGS), pick(TEXT_NAMES)])
        inner = self.text(depth + 1)
        if kind < 0.4:
            return f"({inner} {pick('+~')} {self.text(depth + 1)})"
        if kind < 0.45:
            return f"({inner} ~ {self.expression(depth + 1)})"
        if kind < 0.5:
            # Of a name: a constant is sliced while Jinja reads the template, and what can't be sliced fails then.
            return f"{pick(TEXT_NAMES)}[{self.bounds()}]"
        if kind < 0.7:
            return f"({inner}).{pick(TEXT_METHODS)}"
        if kind < 0.9:
            return f"({inner})|{pick(TEXT_FILTERS)}"
        return f"({self.sequence(depth + 1)})|{pick(['join', 'join(0)', 'tojson', 'string', 'first|string', 'tojson(indent=1)'])}"

    def number(self, depth):
        kind, pick = self.random.random(), self.pick
        if depth > 3 or kind < 0.3:
            return pick([pick(NUMBERS), pick(NUMBER_NAMES)])
        if kind < 0.55:
            return f"({self.number(depth + 1)} {pick(['+', '-', '*', '/', '//', '%', '+', '-'])} {self.number(depth + 1)})"
        if kind < 0.6:
            return f"({self.number(depth + 1)} ** {pick(['2', '0', '-1', '3'])})"
        if kind < 0.65:
            return f"(-{self.number(depth + 1)})"
        if kind < 0.8:
            return f"({self.number(depth + 1)})|{pick(NUMBER_FILTERS)}"
        return f"({self.pick([self.text, self.sequence, self.mapping])(depth + 1)})|{pick(['length', 'count', 'wordcount'])}"

    def sequence(self, depth):
        kind, pick = self.random.random(), self.pick
        if depth > 3 or kind < 0.3:
            return pick([pick(LIST_NAMES), pick(LIST_NAMES), "range(4)|list", "[]"])
        if kind < 0.42:
            return "[" + ", ".join(self.expression(depth + 1) for _ in range(self.random.randrange(4))) + "]"
        if kind < 0.48:
            return "(" + "".join(self.expression(depth + 1) + ", " for _ in range(self.random.randrange(1, 3))) + ")"
        if kind < 0.55:
            return f"({self.sequence(depth + 1)} + {self.sequence(depth + 1)})"
        if kind < 0.62:
            return f"({self.text(depth + 1)}).{pick(['split()', 'splitlines()', 'partition(chr)', 'rsplit(None, 1)'])}".replace("chr", "' '")
        if kind < 0.72:
            return f"{pick(LIST_NAMES)}[{self.bounds()}]"
        return f"({self.sequence(depth + 1)})|{pick(LIST_FILTERS)}"

    def mapping(self, depth):
        if depth > 3 or self.chance(0.6):
            return self.pick(MAPPING_NAMES)
        keys = (self.pick([self.pick(STRINGS), self.pick(["1", "true", "none", "(1, 2)"])]) for _ in range(self.random.randrange(4)))
        return "{" + ", ".join(f"{key}: {self.expression(depth + 2)}" for key in keys) + "}"

    def truth(self, depth):
        kind, pick = self.random.random(), self.pick
        if depth > 3 or kind < 0.15:
            return pick(["t", "b", "true", "false", "s", "es", "n > 2", "u"])
        if kind < 0.4:
            return f"({self.expression(depth + 1)} is {pick(SAFE_TESTS)})"
        if kind < 0.5:
            return f"(not {self.truth(depth + 1)})"
        if kind < 0.65:
            return f"({self.truth(depth + 1)} {pick(['and', 'or'])} {self.truth(depth + 1)})"
        if kind < 0.75:
            return f"({self.expression(depth + 1)} {pick(['in', 'not in'])} {self.sequence(depth + 1)})"
        same = pick([self.number, self.text])
        if kind < 0.95:
            return f"({same(depth + 1)} {pick(['==', '!=', '<', '>', '<=', '>='])} {same(depth + 1)})"
        return f"({same(depth + 1)} {pick(['<', '=='])} {same(depth + 1)} {pick(['<=', '!='])} {same(depth + 1)})"

    def any_of_any(self, depth):
        kind = self.random.random()
        pick, inner = self.pick, lambda: self.expression(depth + 1)
        if depth > 3 or kind < 0.25:
            return pick([pick(STRINGS), pick(NUMBERS), self.name(), self.name(), pick(["true", "false", "none", "True"])])
        if kind < 0.36:
            return f"{inner()} {pick(BINARY)} {inner()}"
        if kind < 0.50:
            return f"{self.postfix(depth + 1)}|{pick(FILTERS)}"
        if kind < 0.58:
            return f"({inner()})"
        if kind < 0.66:
            return f"({self.postfix(depth + 1)} is {pick(TESTS)})"
        if kind < 0.72:
            return f"({inner()} if {inner()}" + (f" else {inner()})" if self.chance(0.8) else ")")
        if kind < 0.84:
            return pick([self.sequence, self.mapping])(depth + 1)
        if kind < 0.88:
            return "-" + self.postfix(depth + 1)
        if kind < 0.92:
            return f"{inner()} {pick(['<', '==', '>=', 'in'])} {inner()} {pick(['<', '!=', '<='])} {inner()}"
        return self.postfix(depth)

    def postfix(self, depth):
        pick = self.pick
        base = pick([self.name(), self.name(), pick(STRINGS), f"({self.expression(depth + 1)})"])
        for _ in range(self.random.randrange(3)):
            kind = self.random.random()
            if kind < 0.3:
                base += "." + pick(STRING_METHODS)
            elif kind < 0.5:
                base += "." + pick(OTHER_METHODS)
            elif kind < 0.6 and not base.endswith(VIEWS):
                base += f"[{self.expression(depth + 2)}]"
            elif kind < 0.75 and base in NAMES:
                base += f"[{self.bounds()}]"
            elif kind < 0.85 and not base.endswith(VIEWS):
                base += pick(["['a']", "[0]", "[-1]", ".x", ".role", ".content", "['zz']", ".0"])
            else:
                base += "|" + pick(FILTERS)
        return base
