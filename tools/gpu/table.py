"""The table of a run: each part's outcome, then each speed beside the ceiling and PyTorch."""
SPEED_PARTS = ("ceilings", "kernels", "engine")


def table(outcomes):
    lines = ["", f"{'part':<12} {'':<8} {'s':>6}  found"]
    lines += [f"{one.part:<12} {one.status:<8} {one.seconds:>6.1f}  {one.summary}" for one in outcomes]
    torch_rows = {row["name"]: row for one in outcomes if one.part == "torch" for row in one.rows}
    speeds = [row for one in outcomes if one.part in SPEED_PARTS for row in one.rows]
    if speeds:
        lines += ["", f"{'operation':<46} {'here':>14} {'of the ceiling':>15} {'torch':>14} {'torch = 1':>10}"]
        lines += [speed_line(row, torch_rows.get(row["name"])) for row in speeds]
    return "\n".join(lines)


def speed_line(row, peer):
    share = f"{100 * row['share_of_ceiling']:.1f} %" if "share_of_ceiling" in row else ""
    theirs, ratio = "", ""
    if peer is not None:
        theirs = figure(peer)
        if "microseconds" in row and "microseconds" in peer:
            ratio = f"{peer['microseconds'] / row['microseconds']:.2f}"
        elif "tokens_per_second" in row and "tokens_per_second" in peer:
            ratio = f"{row['tokens_per_second'] / peer['tokens_per_second']:.2f}"
    return f"{row['name']:<46} {figure(row):>14} {share:>15} {theirs:>14} {ratio:>10}".rstrip()


def figure(row):
    for key, scale, unit in (("microseconds", 1, "us"), ("prompts_per_second", 1, "prompts/s"),
                             ("tokens_per_second", 1, "tok/s"), ("bytes_per_second", 1e-9, "GB/s"),
                             ("flops_per_second", 1e-12, "TFLOP/s")):
        if row.get(key) is not None:
            value = row[key] * scale
            return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return row.get("fault", row.get("left_out", ""))[:40]
