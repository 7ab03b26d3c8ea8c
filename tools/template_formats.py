"""Random formats of Python's two kinds, "%5.1f" % x and "{:>5}".format(x), mostly with values of the right type."""

INTEGERS = ["0", "1", "-1", "5", "255", "-255", "65", "1234", "1234567", "-98765432", "true", "9223372036854775807", "233"]
FLOATS = ["0.0", "-0.0", "1.5", "-2.25", "3.14159", "1e10", "1e16", "1e22", "1.5e-5", "1e-7", "123.456", "1234567.891", "99.95", "0.5",
          "2.5", "12345678.0", "1e300", "9.995", "0.0001", "0.00001", "100000.0", "1e15", "9007199254740993.0", "0.1", "999999.5",
          "95.0", "5e-324", "1.7976931348623157e308", "u|default('inf')|float", "-(u|default('inf')|float)", "u|default('nan')|float"]
TEXTS = ["'a'", "'hello'", "'h\u00e9llo'", "'\u65e5\u672c'", "''", "'%'", "'it\\'s'", "un"]
OTHERS = ["none", "[1]", "{'a':1}", "(1,)", "u", "true"]
WIDTHS = ["", "", "5", "10", "12", "1", "20"]


class FormatGenerator:
    def __init__(self, random):
        self.random = random
        self.pick = random.choice

    def expression(self):
        values = [self.value() for _ in range(self.random.randrange(1, 4))]
        return self.percent(values) if self.random.random() < 0.5 else self.braces(values)

    def value(self):
        """A value and its kind: i, f, s or o."""
        kind = self.pick("iiifffffssso")
        return self.pick({"i": INTEGERS, "f": FLOATS, "s": TEXTS, "o": OTHERS}[kind]), kind

    def percent(self, values):
        if len(values) == 1 and self.random.random() < 0.5:
            value, kind = values[0]
            return f"('%(a){self.percent_options(kind)}' % {{'a': {value}}})"
        text = "".join("%" + self.percent_options(kind) + self.pick(["", " ", "x", "%%"]) for _, kind in values)
        return f"('{text}' % ({', '.join(value for value, _ in values)},))"

    def percent_options(self, kind):
        pick = self.pick
        types = {"i": "diouxXeEfFgGscra", "f": "diueEfFgGsra", "s": "sra", "o": "sra"}[kind]
        if self.random.random() < 0.03:
            types = "sdxcy%"
        flags = "".join(pick("-+ #0") for _ in range(self.random.randrange(3)))
        return flags + pick(WIDTHS) + pick(["", "", "", ".0", ".1", ".2", ".3", ".10", ".", ".17"]) + pick(["", "", "", "l"]) + pick(types)

    def braces(self, values):
        is_numbered = self.random.random() < 0.3
        text = ""
        for index, (_, kind) in enumerate(values):
            conversion = self.pick(["", "", "", "", "", "!r", "!s", "!a"])
            fields = ":" + self.brace_options("s" if conversion else kind)
            fields = self.pick([fields, fields, fields, "", ":{w}", ":{c}>{w}"])
            text += "{" + (str(index) if is_numbered else "") + conversion + fields + "}" + self.pick(["", " ", "{{", "}}"])
        named = f"w={self.pick(['1', '7', '12'])}, c={self.pick([repr('*'), repr('-'), '0'])}"
        return f"('{text}').format({', '.join(value for value, _ in values)}, {named})"

    def brace_options(self, kind):
        pick, is_number = self.pick, kind in "if" or self.random.random() < 0.05
        fill = pick(["", "", "*<", "_>", "\u00e9^", "<", ">", "^", "0<", "0>"] + (["0=", "x=", "="] if is_number else []))
        sign, alternate, grouping = ("", "", "")
        if is_number:
            sign, alternate, grouping = pick(["", "", "+", "-", " "]), pick(["", "", "#"]), pick(["", "", ",", "_"])
        precision = pick(["", "", ".0", ".1", ".2", ".3", ".10", ".5", ".17"])
        types = {"i": "dxXbocn", "f": "fegn%EGF", "s": "s", "o": ""}[kind]
        if kind == "i":
            types, precision = ("feg%", precision) if self.random.random() < 0.3 else (types, "")
        if self.random.random() < 0.03:
            types = "rqsd"
        return fill + sign + alternate + pick(["", "", "0"]) + pick(WIDTHS) + grouping + precision + pick([""] + list(types))
