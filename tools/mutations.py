"""The small changes that `make mutants` makes to a source: one operator, one place, one mutant."""
import collections
import dataclasses
import re

RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
# Statements that begin with one of these aren't expressions that could be removed.
NO_EXPRESSION = re.compile(r"(return\b(?!;)|using|const|auto|static|constexpr|namespace|case|default|template|class|struct|enum|"
                           r"throw|for|while|do|else|switch|public|private|explicit|typedef|friend|extern|goto|\})\b|[#\[}]")
# Nor is a constructor.
CONSTRUCTOR = re.compile(r"(explicit )?[\w:]+\([^;]*?\)\s*:\s")
DECLARATION = re.compile(r"[\w:]+(<[^;=]*>)?(::\w+)?[&*]*\s+[&*]?\w+\s*([;={(\[,]|$)")


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str
    operator: str
    begin: int  # what is replaced, as offsets in the file
    end: int
    replacement: str
    line: int  # number
    before: str  # the lines concerned, without and with the change, blanks put together
    after: str
    nth: int = 0  # among those with the same key

    @property
    def key(self):
        """A key that doesn't change when lines above it move."""
        return (self.file, self.operator, self.before, self.after)

    def apply(self, text):
        return text[:self.begin] + self.replacement + text[self.end:]


def mask(text):
    """The text with blanks instead of comments, literals, preprocessor lines, checks of the program itself, and statements
    that only reserve room."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'|^#[^\n]*',
                         re.DOTALL | re.MULTILINE)
    code = pattern.sub(lambda found: blank(found.group()), text)
    for found in reversed(list(re.finditer(r"\b(PL_CHECK|static_assert)(?=\()|::check_integrity\([^{;]*(?=\{)", code))):
        end = closing(code, found.end())
        code = code[:found.start()] + blank(code[found.start():end]) + code[end:]
    for found in re.finditer(r"(?<=[;{}])[^;{}]*\.reserve(\([^;{}]*\));", code):
        comma = operand_end(code, found.start(1) + 1, re.compile(r"(?!)"))
        if code[comma] != ",":  # else it is more than room
            code = code[:found.start()] + blank(found.group()) + code[found.end():]
    return code


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def closing(code, opening):
    """The offset after the bracket that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0:
            return i + 1
    return len(code)


def operand_end(code, begin, ends):
    """The end of the operand that begins here: an unmatched closing bracket, or a pattern outside brackets."""
    depth = 0
    for i in range(begin, len(code)):
        if depth == 0 and (code[i] in ",;?)]}" or ends.match(code, i)):
            return i
        depth += (code[i] in "([{") - (code[i] in ")]}")
    return len(code)


# In `if (a != b) return a < b;` the border changes nothing.
DIFFERENT = re.compile(r"if \((.+) != (.+)\) return \1 [<>] \2;")


def relational(code):
    lexicographic = {found.end() - len(f"< {found.group(2)};") for found in DIFFERENT.finditer(code)}
    for found in re.finditer(r"(?<= )(<=|>=|==|!=|<|>)(?=[ \n])", code):
        if found.start() not in lexicographic:
            yield found.start(), found.end(), RELATIONS[found.group()]


def logic(code):
    for found in re.finditer(r"(?<= )(&&|\|\|)(?=[ \n])", code):
        yield found.start(), found.end(), {"&&": "||", "||": "&&"}[found.group()]


def plus_minus(code):
    for found in re.finditer(r"(?<= )[+-](?=[ \n]|= )|(?<=[\w)\]] )[+-](?== )", code):
        yield found.start(), found.end(), {"+": "-", "-": "+"}[found.group()]


SUM_ENDS = re.compile(r"(?<= )([+-]|<=?|>=?|==|!=|&&|\|\||:|<<|>>)(?=[ \n])")
CONDITION_ENDS = re.compile(r"(?<= )(&&|\|\||:)(?=[ \n])")


def drop_term(code):
    for found in re.finditer(r" ([+-]|&&|\|\|)[ \n]\s*", code):
        ends = SUM_ENDS if found.group(1) in "+-" else CONDITION_ENDS
        end = operand_end(code, found.end(), ends)
        lines = code.count("\n", found.start(), end)
        yield found.start(), len(code[:end].rstrip(" ")), "\n" * lines


def negate(code):
    for found in re.finditer(r"\b(if|while) (?=\()", code):
        end = closing(code, found.end())
        condition = code[found.end() + 1:end - 1]
        is_single = not re.search(r"&&|\|\|", condition)
        # The opposite of an equality is a relational mutant, that of a negation the next one here.
        if not (is_single and (condition.startswith("!") or re.search(r" [!=]= ", condition))):
            yield found.end(), end, None
    for found in re.finditer(r"(?<=[(&| ])!(?=[\w(])", code):
        yield found.start(), found.end(), ""


def constant(code):
    for found in re.finditer(r"(?<![\w.'])(?<!\d[ep][-+])(\d+)(?![\w.'])", code):
        value = int(found.group())
        yield found.start(), found.end(), str(value + 1)
        if value > 0:
            yield found.start(), found.end(), str(value - 1)
    for found in re.finditer(r"(?<![\w.])\d+\.\d+(?=f?\b)", code):
        yield found.start(), found.end(), str(2 * float(found.group()) or 1.0)
    for found in re.finditer(r"\b(true|false)\b", code):
        yield found.start(), found.end(), {"true": "false", "false": "true"}[found.group()]


def min_max(code):
    for found in re.finditer(r"(?<=std::)(min|max)(?=[<(])", code):
        yield found.start(), found.end(), {"min": "max", "max": "min"}[found.group()]


def rounding(code):
    for found in re.finditer(r"(?<=std::)(floor|ceil)(?=\()", code):
        yield found.start(), found.end(), {"floor": "ceil", "ceil": "floor"}[found.group()]
    for found in re.finditer(r"\b(divide_up|ceil_divide)(?=\()", code):
        end = closing(code, found.end())
        comma = operand_end(code, found.end() + 1, re.compile(r"(?!)"))
        if comma < end and code[comma] == ",":
            yield found.start(), end, f"(({code[found.end() + 1:comma]}) / ({code[comma + 1:end - 1].strip()}))"


def drop_statement(code):
    for found in re.finditer(r"(?<=[;{}:)])\s*?\n\s*(?=[\w+\-*(])|(?<=\belse)\s*?\n\s*(?=[\w+\-*(])", code):
        begin = found.end()
        end = operand_end(code, begin, re.compile(r"(?!)"))
        while end < len(code) and code[end] in ",?":
            end = operand_end(code, end + 1, re.compile(r"(?!)"))
        if end >= len(code) or code[end] != ";":
            continue
        statement = code[begin:end + 1]
        guard = re.match(r"if (?=\()", statement)
        if guard:
            body = statement[closing(statement, guard.end()):].lstrip(" \n")
            is_dropped = not body.startswith("{") and not re.match(r"\s*else\b", code[end + 1:])
        else:
            is_dropped = not any(other.match(statement) for other in (NO_EXPRESSION, CONSTRUCTOR, DECLARATION))
        if is_dropped:
            yield begin, end + 1, ";" + "\n" * statement.count("\n")


OPERATORS = {
    "relational": relational,
    "logic": logic,
    "plus_minus": plus_minus,
    "drop_term": drop_term,
    "drop_statement": drop_statement,
    "negate": negate,
    "constant": constant,
    "min_max": min_max,
    "rounding": rounding,
}


def mutants_of(file, text):
    """Every mutant of a source, in the order of its lines."""
    code = mask(text)
    found = []
    for operator, places in OPERATORS.items():
        for begin, end, replacement in places(code):
            if replacement is None:  # a condition in brackets
                replacement = f"(!{text[begin:end]})"
            first = text.rfind("\n", 0, begin) + 1
            last = text.find("\n", end)
            before = text[first:last]
            after = text[first:begin] + replacement + text[end:last]
            found.append(Mutant(file=file, operator=operator, begin=begin, end=end, replacement=replacement,
                                line=text.count("\n", 0, begin) + 1, before=" ".join(before.split()),
                                after=" ".join(after.split())))
    found.sort(key=lambda mutant: (mutant.begin, mutant.end))
    # If two operators make the same mutant, the first of OPERATORS keeps it.
    first = {}
    for mutant in found:
        first.setdefault((mutant.line, mutant.after), mutant)
    seen = collections.Counter()
    numbered = []
    for mutant in first.values():
        numbered.append(dataclasses.replace(mutant, nth=seen[mutant.key]))
        seen[mutant.key] += 1
    return numbered
