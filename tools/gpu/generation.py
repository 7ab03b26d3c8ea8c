"""Answers of `paceline generate` on a device, as tokens and log-probabilities."""
import json

from gpu import children


class NoAnswer(Exception):
    pass


def has_devices(programs):
    return "--device" in children.run(programs.command("paceline", "generate", "--help-all"), 20).output


def lacks_devices(outcome, setting):
    """What a part says of programs that have no --device: on a GPU it can't pass."""
    why = "this paceline has no --device"
    return outcome.skip(why) if setting.emulated else outcome.fail(why)


def generate(programs, model, items, device, limit_s, *options, emulated=False):
    """[(token ids, log-probabilities)] in the order of the items. Raises NoAnswer."""
    lines = "".join(json.dumps(item) + "\n" for item in items)
    command = programs.command("paceline", "generate", "-m", model, "--jsonl", "--ignore-eos", "--device", device, *options)
    done = children.run(command, limit_s, stdin=lines, variables={"PACELINE_CUDA_EMULATION": "1"} if emulated else {})
    if done.code != 0:
        raise NoAnswer(f"{done.fault()} {done.output.strip()[-300:]}")
    answers = [json.loads(line) for line in done.output.splitlines()]
    for answer in answers:
        if not answer.get("token_ids"):
            raise NoAnswer(json.dumps(answer)[:300])
    return [(answer["token_ids"], answer["logprobs"]) for answer in answers]
