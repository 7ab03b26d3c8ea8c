"""The table of bench_peers.py."""
from dataclasses import dataclass

HEADER = ("file", "test", "Paceline", "llama.cpp", "roofline", "Paceline's share", "llama.cpp's share", "ratio", "bar",
          "")


@dataclass(frozen=True)
class Row:
    file: str
    test: str
    ours: float
    theirs: float
    roofline: float | None
    judged: object
    bar: str
    peer: str = ""  # where it isn't llama.cpp's library

    def cells(self):
        def share(value):
            return f"{100 * value / self.roofline:.0f} %" if self.roofline else "-"
        return (self.file, self.test, figure(self.ours), figure(self.theirs), figure(self.roofline), share(self.ours),
                share(self.theirs), f"{self.judged.ratio:.2f}", self.bar,
                self.judged.text + (f", beside {self.peer}" if self.peer else ""))


def figure(value):
    """Three significant digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def table(rows):
    """Markdown with aligned columns."""
    lines = [HEADER, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    is_number = [2 <= i <= 7 for i in range(len(HEADER))]
    rule = ["-" * (width - 1) + ":" if number else "-" * width for width, number in zip(widths, is_number)]

    def laid_out(line):
        cells = (cell.rjust(width) if number else cell.ljust(width)
                 for cell, width, number in zip(line, widths, is_number))
        return "| " + " | ".join(cells) + " |"
    return "\n".join(map(laid_out, [lines[0], rule, *lines[1:]]))
