"""Compares one model in one format on both sides: settings first, then alternating runs, then memory and agreement."""
import statistics
from dataclasses import dataclass, field

from .bars import judge, judge_memory
from .best_setting import choices_for, search, shorter, words
from .children import BUSY_CORES, Failed, ask
from .table import Row

AGREEMENT = 0.995  # correlation of log-probabilities; 8-bit inputs are rounded by different rules (0.9986 at worst)
# Random delta nets amplify that: 8-bit and bfloat16 inputs of Paceline itself correlate by 0.96.
DELTA_NET_AGREEMENT = 0.9
SCORED_IDS = 32
MIB = 2 ** 20


@dataclass
class Sides:
    paceline: object
    python: object
    threads: int
    remembered: object
    runs: int
    say: object
    others_cores: list = field(default_factory=list)
    second: object = None  # LlamaBench

    def note(self, others):
        self.others_cores.append(others)

    def others(self, first=0):
        """Cores used by other processes, the median of all runs since the first."""
        return statistics.median(self.others_cores[first:] or [0.0])

    def theirs(self, file, test, settings):
        answer, others = ask(self.python, {"do": "run", "file": str(file), "threads": self.threads, "test": test,
                                           "settings": settings})
        self.note(others)
        return answer

    def best(self, file, wanted, test):
        """The peer's best settings for a test, stored if they were found on an idle machine."""
        kind = test["kind"]
        name = "total" if kind == "batch" else kind

        def rate_of(settings):
            rate = self.theirs(file, shorter(test), settings)["rates"][name]
            self.say(f"  {kind}, {words(settings)}: {rate:,.1f} tok/s")
            return rate
        key = " ".join(map(str, (file.name, *test.values(), "threads", self.threads)))
        known, first = self.remembered.get(key), len(self.others_cores)
        if known is None:
            known = search(choices_for(kind, wanted), rate_of)
            if self.others(first) <= BUSY_CORES:
                self.remembered.keep(key, known)
        return known


@dataclass
class Compared:
    rows: list = field(default_factory=list)
    settings: list = field(default_factory=list)  # sentences
    raw: dict = field(default_factory=dict)
    agreement: float = 0.0


def correlation(left, right):
    mean = statistics.fmean
    left, right = [x - mean(left) for x in left], [x - mean(right) for x in right]
    sizes = sum(x * x for x in left) * sum(x * x for x in right)
    return sum(x * y for x, y in zip(left, right)) / sizes ** 0.5 if sizes else 0.0


def agree(sides, file, expected=AGREEMENT):
    """How alike the log-probabilities of the same ids are; Failed when the two don't compute the same model."""
    ids = [1 + i * 7919 % 251 for i in range(SCORED_IDS)]
    theirs, _ = ask(sides.python, {"do": "score", "file": str(file), "threads": sides.threads, "ids": ids})
    found = correlation(sides.paceline.logprobs(file, ids), theirs["logprobs"])
    if not found >= expected:
        raise Failed(f"{file}: Paceline's and llama.cpp's log-probabilities correlate by {found:.4f}, expected "
                     f"{expected} or more: they don't compute the same model, so their speeds can't be compared")
    return found


def rate_row(names, label, bar, runs, peer=""):
    """`bar`: what the rate must reach. `runs`: ((our rate, the roofline's), their rate) of each pair of runs."""
    ours, theirs = [run[0][0] for run in runs], [run[1] for run in runs]
    limits = [run[0][1] for run in runs if run[0][1] is not None]
    share = statistics.median(run[0][0] / run[0][1] for run in runs) if limits else None
    return Row(names, label, statistics.median(ours), statistics.median(theirs),
               statistics.median(limits) if limits else None, judge(bar, ours, theirs, share), str(bar), peer)


def memory_row(sides, names, file, test, label, settings):
    """The peer's smaller peak, with the file mapped and with the file read."""
    few = {**test, "output": 8, "length": test["prompt"] + test["output"]}
    theirs = min(sides.theirs(file, few, {**settings, "mapped": mapped})["peak_bytes"] for mapped in (True, False))
    ours = sides.paceline.peak_bytes(file, test)
    judged = judge_memory(ours, theirs)
    return Row(names, f"{label}, MiB", ours / MIB, theirs / MIB, None, judged, "1.00")


def faster_peer(sides, compared, names, file, kind, runs, second_rates):
    """The peer's name if it is the second one, whose rates are then in `runs`."""
    if not sides.second:
        return ""
    first = statistics.median(theirs for _, theirs in runs[kind])
    second = statistics.median(second_rates[kind])
    compared.settings.append(f"{names}, {kind}: {sides.second.words(file, kind)} reaches {second:,.1f} tok/s, the "
                             f"library {first:,.1f}")
    if second <= first:
        return ""
    runs[kind] = [(ours, theirs) for (ours, _), theirs in zip(runs[kind], second_rates[kind])]
    return "llama-bench"


def compare_single(sides, compared, names, bar_of, wanted, file, prompt, output):
    tests = {"prefill": {"kind": "prefill", "prompt": prompt}, "decode": {"kind": "decode", "output": output}}
    settings = {kind: sides.best(file, wanted, test) for kind, test in tests.items()}
    compared.settings += [f"{names}, {kind}: {words(settings[kind])}" for kind in tests]
    runs, second_rates = {kind: [] for kind in tests}, {kind: [] for kind in tests}
    for i in range(sides.runs):
        sides.say(f"  run {i + 1} of {sides.runs}")
        rates, others = sides.paceline.bench(file, "prefill,decode", prompt, output)
        sides.note(others)
        for kind, test in tests.items():
            runs[kind].append((rates[kind], sides.theirs(file, test, settings[kind])["rates"][kind]))
            if sides.second:
                second_rates[kind].append(sides.second.measure(file, test))
    compared.raw.update(runs, settings=settings, second=second_rates)
    peers = {kind: faster_peer(sides, compared, names, file, kind, runs, second_rates) for kind in tests}
    labels = {"prefill": f"prefill {prompt}, tok/s", "decode": f"decode {output}, tok/s"}
    compared.rows += [rate_row(names, labels[kind], bar_of(kind), runs[kind], peer=peers[kind]) for kind in tests]
    one = {"kind": "batch", "sequences": 1, "prompt": prompt, "output": output}
    compared.rows.append(memory_row(sides, names, file, one, f"memory of 1 x ({prompt} + {output})",
                                    settings["prefill"]))


def compare_batch(sides, compared, names, bar_of, wanted, file, test):
    sequences = test["sequences"]
    label = f"{sequences} x ({test['prompt']} + {test['output']})"
    settings = sides.best(file, wanted, test)
    compared.settings.append(f"{names}, {label}: {words(settings)}")
    runs = []
    for i in range(sides.runs):
        sides.say(f"  batch {label}, run {i + 1} of {sides.runs}")
        rates, others = sides.paceline.batch(file, test)
        sides.note(others)
        runs.append((rates, sides.theirs(file, test, settings)["rates"]))
    compared.raw[label] = {"runs": runs, "settings": settings}
    for kind in ("total", "decode"):
        pairs = [(ours[kind], theirs[kind]) for ours, theirs in runs]
        compared.rows.append(rate_row(names, f"{label} {kind}, tok/s", bar_of(kind, sequences), pairs))
    compared.rows.append(memory_row(sides, names, file, test, f"memory of {label}", settings))


def compare_embed(sides, compared, names, bar, wanted, file, test):
    """Short texts a second, all given together."""
    label = f"{test['texts']} texts of {test['tokens']} tokens"
    settings = sides.best(file, wanted, test)
    compared.settings.append(f"{names}, {label}: {words(settings)}")
    runs = []
    for i in range(sides.runs):
        sides.say(f"  {label}, run {i + 1} of {sides.runs}")
        rate, others = sides.paceline.embed(file, test)
        sides.note(others)
        runs.append(((rate, None), sides.theirs(file, test, settings)["rates"]["embed"]))
    compared.raw[label] = {"runs": runs, "settings": settings}
    compared.rows.append(rate_row(names, f"embed {label}, texts/s", bar, runs))
