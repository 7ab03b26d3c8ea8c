"""deploy/grafana and deploy/prometheus use only metrics that the server has."""
import json
import re
import shutil
import subprocess
import unittest

from proxies import ROOT
from serving import Client, Server

BOARD = ROOT / "deploy/grafana/paceline.json"
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
PROMPT = "The old house by the river"


def metrics_of(expression):
    return set(re.findall(r"paceline:[a-z0-9_]+", expression))


def labels_of(expression):
    """Labels that an expression groups or selects by, less what Prometheus adds."""
    groups = re.findall(r"by \(([^)]*)\)", expression)
    names = {name.strip() for group in groups for name in group.split(",")}
    return (names | set(re.findall(r"(\w+)=~?\"", expression))) - {"instance", "job", "severity"}


class DashboardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = Server("--max-requests", "1")
        cls.addClassCleanup(server.stop)
        client = Client(server.port)
        # One answer, one error, one cancel: labelled counters have no samples before.
        client.post("/v1/completions", {"prompt": PROMPT, "max_tokens": 2})
        client.post("/v1/completions", {"prompt": 1})
        stream = client.open("POST", "/v1/completions",
                             {"prompt": PROMPT, "max_tokens": 900, "ignore_eos": True, "stream": True})
        stream.readline()
        stream.connection.close()
        stream.close()
        client.get("/v1/requests")
        while client.post("/v1/completions", {"prompt": PROMPT, "max_tokens": 1}).status == 429:
            pass
        cls.text = client.get("/metrics").body.decode()
        cls.names = set(re.findall(r"^(paceline:\w+)\{", cls.text, re.MULTILINE))
        cls.labels = {}
        for name, labels in re.findall(r"^(paceline:\w+)\{([^}]*)\}", cls.text, re.MULTILINE):
            cls.labels.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
        cls.board = json.loads(BOARD.read_text())
        cls.panels = [panel for panel in cls.board["panels"] if panel["type"] != "row"]

    def check_expression(self, expression):
        asked = metrics_of(expression)
        self.assertEqual(asked - self.names, set(), "the server has no such metric")
        for name in asked:
            self.assertEqual(labels_of(expression) - self.labels[name], set(), f"{name} has no such label")

    def test_each_panel_shows_what_the_server_has(self):
        self.assertGreater(len(self.panels), 15)
        for panel in self.panels:
            with self.subTest(panel=panel["title"]):
                for target in panel["targets"]:
                    self.assertNotEqual(metrics_of(target["expr"]), set())
                    self.check_expression(target["expr"])
        asked = {variable["name"]: metrics_of(variable["query"]["query"]) for variable in self.board["templating"]["list"]
                 if variable["type"] == "query"}
        # A model that isn't loaded can be chosen; an instance is there once it has a model.
        self.assertEqual(asked, {"model": {"paceline:model_loaded"}, "instance": {"paceline:num_requests_running"}})

    def test_each_panel_has_a_unit_and_says_what_it_is(self):
        for panel in self.panels:
            with self.subTest(panel=panel["title"]):
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"])
                self.assertTrue(panel["description"])
                self.assertEqual(len({target["refId"] for target in panel["targets"]}), len(panel["targets"]))

    def test_panels_lie_beside_one_another(self):
        cells = set()
        for panel in self.board["panels"]:
            place = panel["gridPos"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertLess(x, 24)
                    self.assertNotIn((x, y), cells, panel["title"])
                    cells.add((x, y))
        ids = [panel["id"] for panel in self.board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))

    def test_counters_are_shown_as_rates(self):
        counters = set(re.findall(r"^# TYPE (paceline:\w+) counter", self.text, re.MULTILINE))
        self.assertGreater(len(counters), 10)
        for expression in [target["expr"] for panel in self.panels for target in panel["targets"]]:
            for name in metrics_of(expression) & counters:
                self.assertRegex(expression, rf"rate\({name}\b")

    def test_alerts_ask_for_what_the_server_has(self):
        text = ALERTS.read_text()
        alerts = text.split("      - alert: ")[1:]
        self.assertGreaterEqual(len(alerts), 5)
        for alert in alerts:
            lines = {key: value for key, value in re.findall(r"^ +(\w+): (.+)$", alert, re.MULTILINE)}
            with self.subTest(alert=alert.split("\n")[0]):
                self.assertLessEqual({"expr", "severity", "summary", "description"}, set(lines))
                self.check_expression(lines["expr"])
        self.assertNotIn("\t", text)

    def test_promtool_takes_the_alerts(self):
        program = shutil.which("promtool")
        if program is None:
            self.skipTest("promtool isn't there (Debian's prometheus has it)")
        done = subprocess.run([program, "check", "rules", str(ALERTS)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
