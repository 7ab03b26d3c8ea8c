"""Rates of a run, from the steps in a file of `--trace`."""
import json
import statistics


def steps_of(text):
    """[(seconds, rows of each sequence)] of the steps; the last is measured by its own time, others to the next one."""
    steps = [record for record in map(json.loads, text.splitlines()) if record["type"] == "step"]
    ends = [record["at_us"] for record in steps[1:]] + [steps[-1]["at_us"] + steps[-1]["total_us"]] if steps else []
    return [((end - step["at_us"]) / 1e6, [rows for _, _, rows in step["slices"]]) for step, end in zip(steps, ends)]


def decode_rate(steps, sequences):
    """Tokens a second in steps where so many sequences decode and nothing else happens; None without such steps."""
    seconds = [time for time, rows in steps if rows == [1] * sequences]
    return sequences / statistics.median(seconds) if seconds else None


def prompt_rate(steps, tokens, least=1):
    """Whole prompts of this length a second, in the step that computes the most of them and nothing else; None where
    that are fewer than `least`. Of several such steps the last counts: the first warm up."""
    counts = [len(rows) if rows and set(rows) == {tokens} else 0 for _, rows in steps]
    most = max(counts, default=0)
    if most < least:
        return None
    last = max(index for index, count in enumerate(counts) if count == most)
    return most / steps[last][0]
