#!/usr/bin/env python3
"""The effect of calibration on decisions: accuracy, log loss and calibration error over 48 labelled sentences.

Each setting answers the same questions with `paceline decide`; docs/decisions.md has a table made by this.
"""
import argparse
import json
import math
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = {
    "complaint": {"type": "predicate", "instructions": "Is the customer unhappy?"},
    "topic": {"type": "choice", "instructions": "What is the text about?",
              "choices": [{"value": value} for value in ("sport", "cooking", "weather", "money")]},
    "warmth": {"type": "score", "instructions": "How warm is it?",
               "levels": [{"label": label} for label in ("freezing", "mild", "very hot")]}}
ITEMS = [
    *(("complaint", text, 0) for text in (
        "The parcel never came and nobody answers my calls.", "Third broken cup in a row, I want my money back.",
        "The waiter was rude and the soup was cold.", "Your app deleted all my photos. Terrible.",
        "I waited two hours and then was told to come back tomorrow.", "The room smelled and the heating did not work.",
        "This is the worst service I have ever had.", "The battery died after a day, what a waste of money.")),
    *(("complaint", text, 1) for text in (
        "Thank you, the parcel came a day early!", "The new cups are lovely, we use them every day.",
        "The waiter was kind and the soup was wonderful.", "Your app is a joy to use. Great work.",
        "I was helped at once and everything was solved.", "The room was clean and quiet, we slept very well.",
        "This is the best service I have ever had.", "The battery lasts for days, I am very happy with it.")),
    *(("topic", text, 0) for text in ("She scored twice in the last ten minutes of the match.", "The team lost the final on penalties.",
                                      "He ran the marathon in under three hours.", "The coach praised the goalkeeper after the game.")),
    *(("topic", text, 1) for text in ("Chop the onions and fry them in butter.", "Bake the bread for forty minutes until it is brown.",
                                      "Add a pinch of salt to the boiling pasta.", "Whisk the eggs with sugar and pour in the milk.")),
    *(("topic", text, 2) for text in ("Heavy rain is expected in the north tonight.", "The storm brought wind and hail to the coast.",
                                      "Tomorrow will be sunny with a few clouds.", "Fog covered the valley until noon.")),
    *(("topic", text, 3) for text in ("The bank raised the interest rate on savings.", "Shares fell by three percent on Monday.",
                                      "She paid off her loan and opened an account.", "The tax on profits goes up next year.")),
    *(("warmth", text, 0) for text in ("The lake is covered with thick ice.", "My fingers are numb and it is snowing hard.",
                                       "It is minus twenty outside.", "The pipes have burst in the frost.", "Our breath turned to ice on the window.")),
    *(("warmth", text, 1) for text in ("A light jacket is enough today.", "It is a pleasant spring afternoon.",
                                       "Eighteen degrees and a soft breeze.", "Neither cold nor hot, just right for a walk.",
                                       "An ordinary autumn day with some sun.")),
    *(("warmth", text, 2) for text in ("The asphalt is melting in the sun.", "It is forty degrees in the shade.",
                                       "We are sweating even at midnight.", "The heat wave has dried up the river.",
                                       "The sand burns our feet at noon.", "It is so hot that nobody leaves the house."))]
SETTINGS = {"as it is": [], "content_free_input N/A": ["--content-free-input", "N/A"],
            "temperature 2": ["--decision-temperature", "2"],
            "both": ["--content-free-input", "N/A", "--decision-temperature", "2"]}


def shares_of(answer):
    if answer["type"] == "predicate":
        return [answer["probability"], 1 - answer["probability"]]
    return [one["probability"] for one in answer["probabilities"]]


def calibration_error(judged, num_bins=5):
    """The mean distance of confidence and accuracy over bins of confidence, by their sizes (ECE)."""
    bins = [[] for _ in range(num_bins)]
    for confidence, is_right in judged:
        bins[min(int(confidence * num_bins), num_bins - 1)].append((confidence, is_right))
    return sum(abs(sum(c for c, _ in one) - sum(r for _, r in one)) for one in bins) / len(judged)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--program", default=ROOT / "build" / "release" / "paceline")
    asked = parser.parse_args()
    lines = "".join(json.dumps({"input": text, "questions": [QUESTIONS[name]]}) + "\n" for name, text, _ in ITEMS)
    print(f"{'setting':24} accuracy  log loss  calibration error  label mass")
    for setting, options in SETTINGS.items():
        done = subprocess.run([asked.program, "decide", "-q", "-m", asked.model, "--jsonl", *options], input=lines, text=True,
                              capture_output=True, check=True)
        judged, loss, mass = [], 0, 0
        for (_, _, right), line in zip(ITEMS, done.stdout.splitlines(), strict=True):
            answer = json.loads(line)["answers"][0]
            shares = shares_of(answer)
            judged.append((max(shares), shares.index(max(shares)) == right))
            loss -= math.log(max(shares[right], 1e-9))
            mass += answer["label_mass"]
        accuracy = sum(is_right for _, is_right in judged) / len(judged)
        print(f"{setting:24} {accuracy:8.2f}  {loss / len(judged):8.2f}  {calibration_error(judged):17.2f}  {mass / len(judged):10.2f}")


if __name__ == "__main__":
    main()
