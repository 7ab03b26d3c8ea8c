"""The bars that Paceline must reach beside the peer, and the verdicts."""
import statistics
from dataclasses import dataclass

PREFILL_RATIO, PREFILL_RATIO_BF16 = 1.8, 1.5
DECODE_RATIO = 1.15
TOTAL_RATIO, TOTAL_SEQUENCES = 3.5, 32
# Of mixtures of experts.
MIXTURE_PREFILL_RATIO, MIXTURE_DECODE_RATIO, MIXTURE_TOTAL_RATIO, MIXTURE_SEQUENCES = 1.3, 1.1, 1.5, 8
EMBED_RATIO = 1.5
# Shares of the read bandwidth of all threads: decoding at such a share passes without a ratio.
BANDWIDTH_SHARE = {"BF16": 0.92, "Q8_0": 0.90, "Q4_0": 0.85, "Q4_K_M": 0.80}


@dataclass(frozen=True)
class Bar:
    ratio: float | None = None  # to the peer; None: no bar
    share: float | None = None  # of the roofline; reaching it is enough as well

    def __str__(self):
        if self.ratio is None:
            return "-"
        return f"{self.ratio:.2f}" + (f" or {100 * self.share:.0f} %" if self.share else "")


def mixture_bar_of(test, sequences=1):
    """The same of a mixture of experts."""
    if test == "prefill":
        return Bar(MIXTURE_PREFILL_RATIO)
    if test == "decode" and sequences == 1:
        return Bar(MIXTURE_DECODE_RATIO)
    return Bar(MIXTURE_TOTAL_RATIO) if test == "total" and sequences >= MIXTURE_SEQUENCES else Bar()


def bar_of(test, wanted, sequences=1):
    """The bar of a test (prefill, decode, total, embed) on a file of the format `wanted`."""
    if test == "prefill":
        return Bar(PREFILL_RATIO_BF16 if wanted == "BF16" else PREFILL_RATIO)
    if test == "decode" and sequences == 1:
        return Bar(DECODE_RATIO, BANDWIDTH_SHARE.get(wanted))
    if test == "total" and sequences >= TOTAL_SEQUENCES:
        return Bar(TOTAL_RATIO)
    return Bar(EMBED_RATIO) if test == "embed" else Bar()


@dataclass(frozen=True)
class Judged:
    ratio: float
    passes: bool
    text: str


def judge(bar, ours, theirs, share=None):
    """`ours`, `theirs`: rates of alternating runs; medians count. `share`: ours relative to the roofline."""
    ratio = statistics.median(ours) / statistics.median(theirs)
    if bar.ratio is None:
        return Judged(ratio, True, "-")
    if ratio >= bar.ratio:
        return Judged(ratio, True, "pass")
    if bar.share is not None and share is not None and share >= bar.share:
        return Judged(ratio, True, "pass (bandwidth)")
    return Judged(ratio, False, "MISS")


def judge_memory(ours_bytes, theirs_bytes):
    """No more than the peer."""
    ratio = ours_bytes / theirs_bytes
    return Judged(ratio, ratio <= 1.0, "pass" if ratio <= 1.0 else "MISS")


def spread(values):
    """The spread of runs: (largest - smallest) / median."""
    return (max(values) - min(values)) / statistics.median(values)
