#!/usr/bin/env python3
"""Draws, as SVG on standard output, what `paceline bench --json` or a training run's metrics.jsonl has.

    paceline bench --tests batch --sequences 1,2,4,8 --json > batch.json && python3 tools/plot.py batch.json > batch.svg
    python3 tools/plot.py adapter/metrics.jsonl > losses.svg

Of bench: the seconds of each test over every size that has two values or more, both axes logarithmic, and the speed-up of
replayed drafts over acceptance. A line for each model, format, number of threads and the other sizes.
"""

import html
import json
import math
import sys
from pathlib import Path

COLOURS = ["#3367d6", "#c5572c", "#12a187", "#7566cf", "#d6294a", "#b07d00", "#5d6878", "#00788a"]
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, KEY = 560, 300, 64, 44, 48, 260
STYLE = """<style>text{font:12px sans-serif;fill:#444}.t{font-size:15px;fill:#222}.m{text-anchor:middle}.e{text-anchor:end}
.g{stroke:#ddd}@media (prefers-color-scheme:dark){svg{background:#10141a}text{fill:#bbb}.t{fill:#eee}.g{stroke:#333}}</style>"""


class Axis:
    def __init__(self, values, begin, end, logarithmic):
        self.map = math.log10 if logarithmic else float
        low, high = self.map(min(values)), self.map(max(values))
        step = 1 if logarithmic else 10 ** math.floor(math.log10(max(high - low, 1e-9) / 2))
        step = next((n * step for n in (1, 2, 5) if (high - low) / (n * step) <= 7), 10 * step)
        self.low, self.high = math.floor(low / step) * step, max(math.ceil(high / step), math.floor(low / step) + 1) * step
        self.ticks = [self.low + i * step for i in range(round((self.high - self.low) / step) + 1)]
        self.labels = [f"{10 ** t if logarithmic else t:g}"[:8] for t in self.ticks]
        self.begin, self.end = begin, end

    def at(self, mapped):
        return round(self.begin + (self.end - self.begin) * (mapped - self.low) / (self.high - self.low), 1)


def panel(top, title, unit, lines, logarithmic):
    """A plot of lines {name: [(x, y)]}, whose upper edge is at `top`."""
    points = [point for line in lines.values() for point in line]
    x = Axis([p[0] for p in points], LEFT, LEFT + WIDTH, logarithmic)
    y = Axis([p[1] for p in points], top + TOP + HEIGHT, top + TOP, logarithmic)
    out = [f'<text class="t" x="{LEFT}" y="{top + 24}">{html.escape(title)}</text>',
           f'<text class="m" x="{LEFT + WIDTH / 2}" y="{y.begin + 38}">{html.escape(unit)}</text>']
    for tick, label in zip(y.ticks, y.labels):
        out.append(f'<path class="g" d="M{LEFT} {y.at(tick)}h{WIDTH}"/><text class="e" x="{LEFT - 8}" y="{y.at(tick) + 4}">{label}</text>')
    for tick, label in zip(x.ticks, x.labels):
        out.append(f'<text class="m" x="{x.at(tick)}" y="{y.begin + 18}">{label}</text>')
    for i, (name, line) in enumerate(lines.items()):
        colour, places = COLOURS[i % len(COLOURS)], [(x.at(x.map(p[0])), y.at(y.map(p[1]))) for p in sorted(line)]
        out.append(f'<path fill="none" stroke="{colour}" stroke-width="2" d="M{" L".join(f"{a} {b}" for a, b in places)}"/>')
        out += [f'<circle cx="{a}" cy="{b}" r="2.5" fill="{colour}"/>' for a, b in places if len(places) < 60]
        out.append(f'<text x="{LEFT + WIDTH + 28}" y="{y.end + 12 + 18 * i}">{html.escape(name)}</text>'
                   f'<path stroke="{colour}" stroke-width="3" d="M{LEFT + WIDTH + 8} {y.end + 8 + 18 * i}h14"/>')
    return "".join(out)


def bench_panels(results):
    panels = {}  # (title, unit): lines
    for row in results:
        name = f"{row['model']}, {row['weight_format']}, {row['threads']} threads"
        for drafts in row.get("drafts", []):
            length = "adaptive" if drafts["adaptive"] else f"k {drafts['draft_length']}"
            if "acceptance" in row:
                lines = panels.setdefault((f"speed-up, {row['sequences']} sequences: {name}", "acceptance", False), {})
                lines.setdefault(length, []).append((row["acceptance"], drafts["speedup"]))
        for axis in ("prompt_tokens", "context", "sequences"):
            if row["test"] != "speculate" and row.get("seconds", 0) > 0 and axis in row:
                others = [f"{row[o]} {o}" for o in ("prompt_tokens", "context", "sequences") if o in row and o != axis]
                lines = panels.setdefault((f"{row['test']}: seconds", axis, True), {})
                lines.setdefault(", ".join([name, *others]), []).append((row[axis], row["seconds"]))
    for (title, unit, logarithmic), lines in panels.items():
        grown = {name: line for name, line in lines.items() if len({x for x, _ in line}) > 1}
        if grown:
            yield title, unit, grown, logarithmic


def loss_panels(points):
    lines = {name: [(p["step"], p[key]) for p in points if p.get(key) is not None]
             for name, key in (("training", "loss"), ("validation", "validation_loss"))}
    if any(lines.values()):
        yield "losses", "steps", {name: line for name, line in lines.items() if line}, False


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines() if line]
    panels = list(bench_panels(rows[0]["results"]) if "results" in rows[0] else loss_panels(rows))
    if not panels:
        sys.exit(f"{sys.argv[1]}: nothing to draw: no size has two values")
    height = TOP + HEIGHT + BOTTOM
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + KEY} {height * len(panels)}">{STYLE}')
    print("\n".join(panel(height * i, *one) for i, one in enumerate(panels)) + "</svg>")


if __name__ == "__main__":
    main()
