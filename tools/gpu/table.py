"""The table of a run: each part's outcome, then each speed beside the ceiling, PyTorch and its bar."""
from gpu.bars import BARS

SPEED_PARTS = ("kernels", "decode", "prompts", "hybrids", "quantised", "sentences", "http", "products", "attention", "others")
# Of a row: its key, the scale of the unit, and whether more is better.
UNITS = {"flops_per_second": (1e-12, "TFLOP/s"), "microseconds": (1, "us"), "prompts_per_second": (1, "prompts/s"),
         "tokens_per_second": (1, "tok/s"), "bytes_per_second": (1e-9, "GB/s"), "seconds": (1, "s")}
LESS_IS_BETTER = ("us", "s")
# Parts that are judged by their rate. Others of the same programs have microseconds beside it.
RATED = ("products", "attention", "torch_products", "torch_attention")


def figures_of(outcomes):
    """[{name, value, unit, torch, ratio, bar, of_bar, ...}] of the speeds: above 1 ours is faster, or above its bar."""
    peers = {row["name"]: row for one in outcomes if one.part.startswith("torch") for row in one.rows}
    return [figure_of(row, peers.get(row["name"], {}), one.part) for one in outcomes if one.part in SPEED_PARTS
            for row in one.rows if not ("passed" in row and one.part != "kernels")]  # ceilings are checked too


def figure_of(row, peer, part):
    found = measured(row, part)
    if found is None:
        return {"name": row["name"], "why": row.get("fault", row.get("left_out", ""))}
    value, unit = found
    figure = {"name": row["name"], "part": part, "value": value, "unit": unit}
    for key, other in (("torch", (measured(peer, part) or (None, ""))), ("bar", (BARS.get(row["name"]), unit))):
        if other[0] is not None and other[1] == unit:
            ratio = other[0] / value if unit in LESS_IS_BETTER else value / other[0]
            figure.update({key: other[0], {"torch": "ratio", "bar": "of_bar"}[key]: round(ratio, 3)})
    hows = [text for text in (row.get("how"), peer.get("how") and f"torch: {peer['how']}") if text]
    if hows:
        figure["how"] = "; ".join(hows)
    if "share_of_ceiling" in row:
        figure["share_of_ceiling"] = row["share_of_ceiling"]
    return figure


def measured(row, part):
    """(value, unit) of a row; None for one without a speed."""
    keys = UNITS if part in RATED else sorted(UNITS, key=lambda key: key == "flops_per_second")
    for key in keys:
        if row.get(key) is not None:
            scale, unit = UNITS[key]
            return row[key] * scale, unit
    return None


def table(outcomes):
    lines = ["", f"{'part':<16} {'':<8} {'s':>6}  found"]
    lines += [f"{one.part:<16} {one.status:<8} {one.seconds:>6.1f}  {one.summary}" for one in outcomes]
    figures = figures_of(outcomes)
    if figures:
        lines += ["", f"{'':<46} {'here':>16} {'ceiling':>8} {'torch':>9} {'ratio':>6} {'bar':>9} {'of it':>6}  how"]
        lines += [figure_line(figure) for figure in figures]
    return "\n".join(lines)


def figure_line(figure):
    if "value" not in figure:
        return f"{figure['name']:<46} {figure['why'][:60]}"
    share = f"{100 * figure['share_of_ceiling']:.0f} %" if "share_of_ceiling" in figure else ""
    cells = [number(figure.get("torch")), ratio(figure.get("ratio")), number(figure.get("bar")), ratio(figure.get("of_bar"))]
    here = f"{number(figure['value'])} {figure['unit']}"
    return (f"{figure['name']:<46} {here:>16} {share:>8} {cells[0]:>9} {cells[1]:>6} {cells[2]:>9} {cells[3]:>6}  "
            f"{figure.get('how', '')}").rstrip()


def number(value):
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(value):
    return "" if value is None else f"{value:.2f}"
